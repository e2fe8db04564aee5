"""From a run of the hidden tests to a verdict. Pure.

The rule is R2E-Gym's: the tests that ran are those that are expected, each with its status, failures included.
"""

import hashlib
from functools import cache
from pathlib import Path

from stepwell.events.canonical import digest_of_json
from stepwell.sandbox.protocol import ExecEnd
from stepwell.tasks.grading.expected import compare
from stepwell.tasks.grading.verdict import Failure, Outcome, Score, grader_digest
from stepwell.tasks.r2e.expected import ExpectedTests
from stepwell.tasks.r2e.image_run import ImageRun


def judge(run: ImageRun, expected: ExpectedTests, *, timeout_s: float) -> Score | Failure:
    """The verdict on a run.

    Returns:
        `Failure("infra")` if the runner did not start, which nothing of the agent's can keep it from; else a `Score`,
        whose outcomes say of each expected test whether it had its status (`passed`), another, or none.
    """
    if not run.started and run.end is not ExecEnd.TIMEOUT:
        return Failure(kind="infra", cause=f"the image's tests did not start ({run.end}, {run.returncode}): {run.said}")
    outcomes: dict[str, Outcome] = {
        test: "missing" if test not in run.found else "passed" if run.found[test] == status else "failed"
        for test, status in expected.expected.items()
    }
    compared = compare(expected.expected, run.found)
    fault = _fault_of(run, timeout_s)
    value = 1.0 if fault is None and compared.agree else 0.0
    return Score(
        value=value,
        outcomes=outcomes,
        timed_out=run.end is ExecEnd.TIMEOUT,
        report=compared.reason if fault is None else fault,
    )


def _fault_of(run: ImageRun, timeout_s: float) -> str | None:
    """The first thing that makes a run worth nothing, whatever its tests gave."""
    if run.end is ExecEnd.TIMEOUT:
        return f"the tests did not end within {timeout_s} s"
    if run.misconduct is not None:
        return f"the grader's channel was misused: {run.misconduct}"
    if not run.ended:
        return f"the tested code ended the runner before it could report (status {run.returncode})"
    if run.altered:
        return f"the tested code changed hidden tests while they ran: {run.altered[:5]}"
    return None


@cache
def r2e_grader_digest() -> str:
    """SHA-256 over the sources that decide a verdict on a task of R2E-Gym."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    parts = [[source.name, hashlib.sha256(source.read_bytes()).hexdigest()] for source in sources]
    return digest_of_json([grader_digest(), parts])
