"""The rule of R2E-Gym: every listed test has its expected status, failures included. Pure.

The benchmark compares names that were cut out of a printed summary: the file is dropped, parameters are cut at ` - `,
and a test that is missing on one side can raise a KeyError. Here statuses come by full test id from the runner's
channel.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from stepwell.tasks.grading.answer import Status

_LISTED: frozenset[Status] = frozenset({"passed", "failed", "error"})
"""What the benchmark's summary names by test; it folds skips, and its lists have no expected failures."""


@dataclass(frozen=True)
class Compared:
    """Statuses against those expected."""

    agree: bool
    reason: str
    """Each difference, the first five in words."""


def compare(expected: Mapping[str, Status], seen: Mapping[str, Status], *, strict: bool = True) -> Compared:
    """Whether every expected test has its status.

    Args:
        expected: Full test id to status; at least one.
        seen: Full test id to status, of all tests that ran.
        strict: Whether a test that passed, failed or had an error and is not expected is a difference, as in the
            benchmark, whose rule wants as many tests as it lists.

    Raises:
        ValueError: nothing is expected.
    """
    if not expected:
        raise ValueError("no test is expected: a task without expectations cannot be graded")
    differences = [
        f"{test} is {_said(seen.get(test))}, not {wanted}"
        for test, wanted in expected.items()
        if not _same(wanted, seen.get(test))
    ]
    if strict:
        differences += [f"{test} is not among the expected tests" for test in seen if _is_extra(test, expected, seen)]
    if not differences:
        return Compared(True, f"all {len(expected)} tests have their expected status")
    more = f"; and {len(differences) - 5} more" if len(differences) > 5 else ""
    return Compared(False, f"{len(differences)} differences: {'; '.join(differences[:5])}{more}")


def _same(wanted: Status, seen: Status | None) -> bool:
    """Versions of pytest differ in whether an unexpected pass is a pass, and an expected failure a skip."""
    groups: tuple[frozenset[Status], ...] = (frozenset({"passed", "xpassed"}), frozenset({"skipped", "xfailed"}))
    return seen == wanted or any(wanted in group and seen in group for group in groups)


def _is_extra(test: str, expected: Mapping[str, Status], seen: Mapping[str, Status]) -> bool:
    return test not in expected and seen[test] in _LISTED


def _said(seen: Status | None) -> str:
    return "missing" if seen is None else seen
