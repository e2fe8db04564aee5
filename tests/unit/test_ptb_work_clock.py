"""The agent's clock counts only while it can work, and its lease decides whether it can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.supervisor.work_clock import OVER_FACTOR, Lease, WorkClock

TURNS = st.lists(st.tuples(st.sampled_from(["run", "stand"]), st.integers(min_value=0, max_value=10_000)))
"""What the clock is told, and how long after the turn before."""


@given(TURNS, st.integers(min_value=0, max_value=10_000))
def test_worked_and_stood_are_the_stretches_after_each_turn(turns: list[tuple[str, int]], last: int) -> None:
    now, worked, stood, runs = 100, 0, 0, False
    clock = WorkClock(5_000.0, now)
    for turn, after in [*turns, ("stand", last)]:
        worked, stood = (worked + after, stood) if runs else (worked, stood + after)
        now += after
        assert (clock.worked_s(now), clock.stood_s(now)) == (worked, stood)
        assert clock.remaining_s(now) == max(0, 5_000 - worked)
        runs = turn == "run"
        clock.run(now) if runs else clock.stand(now)


def test_a_clock_stands_when_it_is_made() -> None:
    assert WorkClock(10.0, 5.0).remaining_s(500.0) == 10.0


@pytest.mark.parametrize(
    ("age_s", "state"),
    [(0.0, "held"), (60.0, "held"), (60.5, "lapsed"), (600.0, "lapsed"), (600.5, "over"), (1e9, "over")],
)
def test_a_lease_is_held_then_lapsed_then_over(age_s: float, state: str) -> None:
    assert OVER_FACTOR == 10
    lease = Lease(60.0, 1_000.0)
    lease.renew(2_000.0)
    assert lease.state(2_000.0 + age_s) == state
