"""What a run has used, counted on from the last record, against its limits."""

import pytest

from stepwell.contracts.run import Usage
from stepwell.events import TurnRecorded, UsageRecorded, VerdictReached
from stepwell.health.usage import UsageCount, amount_words, reached, usage_words

TURN = TurnRecorded(
    turn=0,
    epoch=0,
    payload="p",
    version=1,
    prompt_tokens=10,
    generated_tokens=500,
    tool="run",
    tree="t",
    engine="e",
    generate_s=4.0,
    tool_s=2.0,
)
VERDICT = VerdictReached(task="t", tree="t", grader="g", score=1.0, timed_out=False, report="r", duration_s=3.0)
USAGE = Usage(hours=0.5, gpu_hours=1.25, generated_tokens=1_000_003, sandbox_minutes=61.25)


def test_usage_is_the_sum_of_time_turns_and_verdicts() -> None:
    count = UsageCount(None)
    count.pass_time(1800.0, 3)
    count.see([TURN, VERDICT, TURN])
    assert count.usage == Usage(hours=0.5, gpu_hours=1.5, generated_tokens=1000, sandbox_minutes=0.25)


def test_counting_goes_on_from_the_last_record() -> None:
    whole, first = UsageCount(None), UsageCount(None)
    for count in (whole, first):
        count.pass_time(60.0, 2)
        count.see([TURN])
    last = UsageRecorded(number=0, **first.usage.model_dump(), seen_xid=1, seen_position=2)
    second = UsageCount(last)
    for count in (whole, second):
        count.pass_time(30.0, 1)
        count.see([VERDICT])
    assert second.usage == whole.usage


@pytest.mark.parametrize(
    ("limits", "cause"),
    [
        ({"generated_tokens": 1_000_000}, "generated 1,000,003 tokens; the limit is 1,000,000"),
        ({"hours": 0.5}, "ran for 0.5 hours; the limit is 0.5"),
        ({"gpu_hours": 1}, "used 1.25 GPU-hours; the limit is 1"),
        ({"sandbox_minutes": 60.5}, "held sandboxes for 61.2 minutes; the limit is 60.5"),
    ],
)
def test_a_limit_that_is_reached_is_told_with_its_figures(limits: dict[str, float | None], cause: str) -> None:
    over = reached(USAGE, limits, ())
    assert over is not None
    assert (over.limit, over.cause) == (next(iter(limits)), cause)
    assert reached(USAGE, limits, tuple(limits)) is None


@pytest.mark.parametrize(
    "limits",
    [{}, {"hours": None}, {"hours": 0.6, "gpu_hours": 1.3, "generated_tokens": 1_000_004}, {"steps": 1}],
)
def test_no_limit_and_one_not_reached_hold_nothing(limits: dict[str, float | None]) -> None:
    assert reached(USAGE, limits, ()) is None


def test_of_two_limits_that_are_reached_the_one_not_held_is_told() -> None:
    over = reached(USAGE, {"hours": 0.1, "gpu_hours": 0.1}, ("hours",))
    assert over is not None
    assert over.limit == "gpu_hours"


def test_usage_reads_well_with_and_without_limits() -> None:
    words = usage_words(USAGE, {"hours": 4, "generated_tokens": 2_000_000})
    assert words == "0.5 of 4 hours, 1.25 GPU-hours, 1,000,003 of 2,000,000 tokens, 61.2 sandbox-minutes"


@pytest.mark.parametrize(
    ("amount", "words"), [(0.0, "0"), (0.00123, "0.00123"), (61.25, "61.2"), (1234.56, "1,234.6"), (2e6, "2,000,000")]
)
def test_amounts_read_well(amount: float, words: str) -> None:
    assert amount_words(amount) == words
