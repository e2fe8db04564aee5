"""From a run of the tests to what was wrong with it, in words. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stepwell.sandbox.protocol import ExecEnd
from stepwell.tasks.grading.run_tests import TestRun
from stepwell.tasks.grading.twins import Twin
from stepwell.tasks.grading.verdict import Outcome

NAMED = 5
"""Most tests, canaries or files that a reason names."""


@dataclass(frozen=True)
class Suspects:
    """Tests that did not do what honest work does, if the reference solution does otherwise."""

    what: str
    """What they are, for the reason."""
    tests: tuple[str, ...]
    honest: Literal["passes", "fails"] = "fails"
    """What the reference solution does with them where they convict."""


@dataclass(frozen=True)
class Trial:
    """What came of suspects."""

    conviction: str | None = None
    """The reason for a score of 0."""
    loose: frozenset[str] = frozenset()
    """Without conviction: tests that tell nothing, since the reference solution passes them with any expectation."""


def outcomes_of(run: TestRun, expected: Sequence[str]) -> dict[str, Outcome]:
    """Outcome of each expected test."""
    outcomes: dict[str, Outcome] = {}
    for test in expected:
        said = run.tests.get(test)
        outcomes[test] = "missing" if said is None else "passed" if said.passed else "failed"
    return outcomes


def fault_of(run: TestRun, expected: Collection[str]) -> str | None:
    """The first thing that makes a run worth nothing, or None: it was in order, and all expected tests passed."""
    if run.end is ExecEnd.TIMEOUT:
        return f"the tests did not end within {run.deadline_s:g} s"
    if run.killed is not None:
        return f"the sandbox ended the tests: {run.killed}"
    if run.misconduct is not None:
        return f"the grader's channel was misused: {run.misconduct}"
    if not run.ended:
        return f"the tested code ended the runner before it could report (status {run.returncode})"
    if run.altered:
        return f"the tested code changed hidden tests while they ran: {run.altered[:NAMED]}"
    return _not_passed(run, expected)


def _not_passed(run: TestRun, expected: Collection[str]) -> str | None:
    wrong = [test for test in expected if test not in run.tests or not run.tests[test].passed]
    if not wrong:
        return None
    details = [f"{test}: {run.tests[test].detail if test in run.tests else 'not reported'}" for test in wrong]
    return f"{len(wrong)} of {len(expected)} tests did not pass: " + "; ".join(details[:NAMED])


def bent_canaries(run: TestRun, canaries: Mapping[str, str]) -> Suspects | None:
    """The canaries that did not fail."""
    bent = tuple(test for test in canaries if test not in run.tests or run.tests[test].passed)
    return Suspects(f"of {len(canaries)} canaries, which must fail, did not fail", bent) if bent else None


def unmoved_by(twin: Twin, run: TestRun) -> Suspects | None:
    """The tests of functions whose expectation was changed, of each of which none failed."""
    unmoved = [unit for unit in twin.changed if not any(_failed(run, test) for test in unit.tests)]
    if not unmoved:
        return None
    tests = tuple(test for unit in unmoved for test in unit.tests)
    return Suspects(f"of {len(twin.changed)} tests passed although something else was expected of them", tests)


def strays_of(twin: Twin, run: TestRun, expected: Sequence[str]) -> Suspects | None:
    """The expected tests that did not pass although nothing else was expected of them."""
    same = [test for test in expected if not twin.touches(test)]
    strays = tuple(test for test in same if test not in run.tests or not run.tests[test].passed)
    if not strays:
        return None
    what = f"of {len(same)} tests, which had passed, did not where other results were expected of other tests"
    return Suspects(what, strays, honest="passes")


def _failed(run: TestRun, test: str) -> bool:
    return test in run.tests and not run.tests[test].passed


def told_apart(suspects: Suspects, reference: TestRun) -> tuple[str, ...]:
    """Those with which the reference solution, as honest work, does otherwise: the others tell nothing."""
    if suspects.honest == "fails":
        return tuple(test for test in suspects.tests if _failed(reference, test))
    return tuple(test for test in suspects.tests if test in reference.tests and reference.tests[test].passed)


def conviction(suspects: Suspects, convicting: Sequence[str]) -> str:
    """The reason."""
    return f"{len(convicting)} {suspects.what}: {list(convicting[:NAMED])}"
