"""The verdict on a run of a task's hidden tests."""

from dataclasses import replace

import pytest

from stepwell.sandbox.protocol import ExecEnd
from stepwell.tasks.grading.verdict import Failure, Score
from stepwell.tasks.r2e.expected import Status, expected_tests
from stepwell.tasks.r2e.image_run import ImageRun
from stepwell.tasks.r2e.judging import judge
from tests.r2e_rows import EXPECTED, TESTS

WANTED = expected_tests(TESTS, EXPECTED)
RIGHT = ImageRun(ExecEnd.EXITED, 0, True, True, dict(WANTED.expected), (), None, "")
AREA = "r2e_tests/test_1.py::test_area"
LOST = "r2e_tests/test_1.py::TestShapes::test_lost"


def score(run: ImageRun) -> Score:
    verdict = judge(run, WANTED, timeout_s=60.0)
    assert isinstance(verdict, Score)
    return verdict


def test_every_test_with_its_status_is_a_one() -> None:
    assert (score(RIGHT).value, score(RIGHT).failed) == (1.0, ())


@pytest.mark.parametrize(
    ("test", "status"),
    [(AREA, "failed"), (AREA, "error"), (LOST, "passed"), ("r2e_tests/test_1.py::test_new", "passed")],
)
def test_another_status_or_test_is_a_zero_and_is_named(test: str, status: Status) -> None:
    verdict = score(replace(RIGHT, found=RIGHT.found | {test: status}))
    assert verdict.value == 0.0
    assert test in verdict.report


def test_a_test_that_did_not_run_is_missing() -> None:
    verdict = score(replace(RIGHT, found={test: said for test, said in RIGHT.found.items() if test != AREA}))
    assert (verdict.value, verdict.outcomes[AREA]) == (0.0, "missing")


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (replace(RIGHT, misconduct="a was reported twice"), "channel was misused"),
        (replace(RIGHT, ended=False), "ended the runner"),
        (replace(RIGHT, altered=("r2e_tests/test_1.py",)), "changed hidden tests"),
        (replace(RIGHT, end=ExecEnd.TIMEOUT), "did not end within 60.0 s"),
    ],
)
def test_a_run_out_of_order_is_a_zero_whatever_it_gave(run: ImageRun, said: str) -> None:
    assert score(run).value == 0.0
    assert said in score(run).report


def test_a_runner_that_did_not_start_is_no_score() -> None:
    verdict = judge(replace(RIGHT, started=False, said="no such file"), WANTED, timeout_s=60.0)
    assert isinstance(verdict, Failure)
    assert (verdict.kind, "no such file" in verdict.cause) == ("infra", True)
