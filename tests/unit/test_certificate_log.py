"""A log that is handed in with a run must be what its ledger gives."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.mlperf.certificate.certify import certify
from stepwell.mlperf.certificate.rules.log import GivenLog
from stepwell.mlperf.log_comparison import Difference, first_difference
from tests.certified_run import INLINE, NOON_MS, written

LINES = st.lists(st.text(alphabet="ab", max_size=2), max_size=5)


@given(log=LINES)
def test_a_log_does_not_differ_from_itself_whatever_ends_its_lines(log: list[str]) -> None:
    assert first_difference(log, [f"{line}\r\n" for line in log]) is None


@given(expected=LINES, found=LINES)
def test_two_logs_agree_up_to_the_first_difference(expected: list[str], found: list[str]) -> None:
    difference = first_difference(expected, found)
    if difference is None:
        assert expected == found
        return
    before = difference.line - 1
    assert expected[:before] == found[:before]
    wanted, given = [*expected, None][before] if before <= len(expected) else None, [*found, None][before]
    assert (difference.expected, difference.found) == (wanted, given)
    assert wanted != given


def test_a_difference_says_what_was_found_and_what_is_right() -> None:
    assert str(Difference(3, None, "more")) == "line 3: it has more, the ledger gives nothing"
    assert str(Difference(3, "less", None)) == "line 3: the log ends, the ledger gives less"


def log_of(stop_ms: int = NOON_MS, accuracy: float = 1.0) -> list[str]:
    """What of a log of the run decides its result."""
    fields = [
        {"key": "seed", "value": 0, "time_ms": NOON_MS, "metadata": {}},
        {"key": "eval_accuracy", "value": accuracy, "time_ms": NOON_MS, "metadata": {"samples_count": 12}},
        {"key": "run_stop", "value": None, "time_ms": stop_ms, "metadata": {"status": "success"}},
    ]
    return [f":::MLLOG {json.dumps(each)}" for each in fields]


@pytest.mark.parametrize(
    ("found", "line", "said"),
    [
        (log_of(), None, ""),
        (log_of(stop_ms=NOON_MS - 1000), 3, "line 3: it has :::MLLOG"),
        (log_of(accuracy=0.7), 2, "line 2: it has"),
        ([log_of()[0].replace("0,", "1,"), *log_of()[1:]], 1, "line 1: it has"),
        (log_of()[:2], 3, "line 3: the log ends"),
        ([*log_of(), "more"], 4, "the ledger gives nothing"),
    ],
    ids=["as it is", "another stop time", "another accuracy", "an edited line", "cut off", "a line too many"],
)
async def test_an_edited_log_line_is_found(found: list[str], line: int | None, said: str) -> None:
    certificate = certify((await written(INLINE)).record("r"), GivenLog("result_0.txt", found, log_of()))
    refusals = [result for result in certificate.results if result.findings]
    assert [result.rule for result in refusals] == ([] if line is None else ["log"])
    if line is not None:
        first = refusals[0].findings[0]
        assert (first.stream, first.seq) == ("result_0.txt", line)
        assert said in first.what


async def test_a_log_that_was_derived_wrongly_is_found_by_the_record() -> None:
    false = log_of(stop_ms=NOON_MS - 1000, accuracy=0.7)
    certificate = certify((await written(INLINE)).record("r"), GivenLog("log", false, false))
    (log,) = [result for result in certificate.results if result.findings]
    assert [finding.seq for finding in log.findings] == [3, 2]
    assert "says that the run stopped at 1769860799000 ms; version 2 passed" in log.findings[0].what
    assert "says the accuracy 0.7 after 12 samples; recorded is 1.0" in log.findings[1].what
