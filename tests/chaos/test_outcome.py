"""What the suite reads out of a ledger: lost and repeated turns, recovery, work lost."""

from collections.abc import Sequence

import pytest

from db.recorded import Recorded
from stepwell.agent.protocol import StopReason
from stepwell.events import AttemptOpened, CheckpointSaved, RolloutEnded, RolloutRestarted, StepAdmitted, TurnRecorded
from stepwell.events.base import Event
from stepwell.events.children import Commitment
from stepwell.events.envelope import GENESIS, seal
from tests.chaos.faults import Append, EventName, Fault
from tests.chaos.outcome import Turns, cost_of, run_facts, turns_of, work_lost_s

ROLLOUT = "rollout/chaos/0/0/1"
SIGNALLED_S = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""


def at(second: float, stream: str, seq: int, event: Event) -> Recorded:
    """An event recorded so many seconds after the signal; before it for negative ones."""
    whole = int(second + 60)
    time = f"{'2025-12-31T23:59' if whole < 60 else '2026-01-01T00:00'}:{whole % 60:02}.{round(second % 1 * 1e6):06}Z"
    envelope = seal(
        stream=stream,
        seq=seq,
        key=event.key(),
        type=event.type,
        schema=event.SCHEMA,
        actor="test:1",
        body=event.body(),
        prev_hash=GENESIS,
        time=time,
    )
    return Recorded(envelope, event)


def attempt(resumed_at: int) -> AttemptOpened:
    return AttemptOpened(attempt=f"a{resumed_at}", worker="sandbox:1", resumed_at=resumed_at)


def turn(number: int, *, epoch: int = 0) -> TurnRecorded:
    digest = "0" * 64
    return TurnRecorded(
        turn=number,
        epoch=epoch,
        payload=digest,
        version=0,
        prompt_tokens=1,
        generated_tokens=1,
        tool="view",
        tree=digest,
        engine="engine",
        generate_s=0.0,
        tool_s=0.0,
    )


def ended(turns: int) -> RolloutEnded:
    digest = "0" * 64
    return RolloutEnded(
        reason=StopReason.TURNS,
        epoch=0,
        turns=turns,
        generated_tokens=turns,
        total_tokens=turns,
        content=digest,
        changed=digest,
        tree=digest,
        verdict_key=digest,
    )


def stream_of(*events: Event) -> list[Recorded]:
    return [at(-30.0 + seq, ROLLOUT, seq, event) for seq, event in enumerate(events)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([attempt(0), turn(0), turn(1), ended(2)], Turns(2, 0, 0)),
        ([attempt(0), turn(0), attempt(1), turn(1), ended(2)], Turns(2, 0, 0)),
        ([attempt(0), turn(0), attempt(0), turn(1), ended(2)], Turns(2, 1, 0)),
        ([attempt(0), turn(0), turn(1), ended(1)], Turns(2, 1, 0)),
    ],
    ids=["undisturbed", "taken up", "taken up too early", "not counted"],
)
def test_turns_are_lost_when_an_attempt_or_the_end_does_not_know_them(events: Sequence[Event], expected: Turns) -> None:
    assert turns_of(stream_of(*events)) == expected


def test_turns_of_a_rollout_that_started_over_are_lost_and_repeated() -> None:
    found, recorded = "1" * 64, "0" * 64
    restarted = RolloutRestarted(epoch=1, turn=0, expected=recorded, found=found)
    events = [attempt(0), turn(0), attempt(1), restarted, turn(0, epoch=1), ended(1)]
    assert turns_of(stream_of(*events)) == Turns(2, 1, 1)


def hit(moment: str) -> Fault:
    append = Append((EventName("rollout/0/0/1", "TurnRecorded", 1),), "sandbox")
    return Fault(append, "before" if moment == "before" else "after")


EVENTS = [
    at(-3.0, ROLLOUT, 0, attempt(0)),
    at(-2.0, ROLLOUT, 1, turn(0)),
    at(0.1, "weights/chaos", 0, CheckpointSaved(version=0, files="0" * 64)),
    at(20.0, ROLLOUT, 2, turn(1)),
]


def test_recovery_is_the_next_event_of_the_run_and_resumption_that_of_the_stream() -> None:
    cost = cost_of(hit("before"), SIGNALLED_S, committed=False, events=EVENTS, run="chaos")
    assert (cost.recovery_s, cost.resumed_s) == (pytest.approx(0.1), pytest.approx(20.0))
    assert cost.work_lost_s == pytest.approx(2.0)


def test_append_that_was_let_through_is_no_recovery() -> None:
    events = [*EVENTS[:2], at(-0.05, ROLLOUT, 2, turn(1)), at(20.0, ROLLOUT, 3, ended(2))]
    cost = cost_of(hit("after"), SIGNALLED_S, committed=True, events=events, run="chaos")
    assert (cost.recovery_s, cost.resumed_s) == (pytest.approx(20.0), pytest.approx(20.0))
    assert cost.work_lost_s == pytest.approx(0.05)


def test_trainer_loses_what_it_did_since_the_batch_was_fixed() -> None:
    commitment = Commitment(count=0, heads="0" * 64, facts="0" * 64)
    admitted = StepAdmitted(
        step=0,
        manifest="0" * 64,
        group_facts="0" * 64,
        group_heads=commitment,
        rollouts=2,
        masked=0,
        reward_mean=0.5,
    )
    before = [
        at(-9.0, "weights/chaos", 0, CheckpointSaved(version=0, files="0" * 64)),
        at(-4.0, "run/chaos", 1, admitted),
    ]
    assert work_lost_s("trainer", SIGNALLED_S, before) == pytest.approx(4.0)
    assert work_lost_s("control", SIGNALLED_S, before) == 0.0


def test_facts_do_not_depend_on_attempts_or_on_the_names_of_engines() -> None:
    plain = stream_of(attempt(0), turn(0), turn(1), ended(2))
    disturbed = stream_of(attempt(0), turn(0), attempt(1), turn(1), ended(2))
    other = stream_of(attempt(0), turn(0), ended(1))
    assert run_facts(plain, "chaos").facts == run_facts(disturbed, "chaos").facts
    assert run_facts(plain, "chaos").facts != run_facts(other, "chaos").facts
    assert run_facts(plain, "chaos").differs_from(run_facts(other, "chaos")) == ["rollout/0/0/1"]
