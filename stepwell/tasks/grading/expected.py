"""The rule of R2E-Gym: every listed test has its expected status, failures included. Pure.

The benchmark compares names that were cut out of a printed summary: the file is dropped, parameters are cut at ` - `,
and a test that is missing on one side can raise a KeyError. Here statuses come by full test id from the runner's
channel; `full_ids` finds, once when a task is imported, which collected test each of the benchmark's names means, and
refuses names that could mean two.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stepwell.tasks.grading.answer import Status

_STATUSES: Mapping[str, Status] = {
    "PASSED": "passed",
    "FAILED": "failed",
    "ERROR": "error",
    "SKIPPED": "skipped",
    "XFAIL": "xfailed",
    "XPASS": "xpassed",
}
_SEPARATOR = " - "
_LISTED: frozenset[Status] = frozenset({"passed", "failed", "error"})
"""What the benchmark's summary names by test; it folds skips, and its lists have no expected failures."""


class UnclearExpectation(ValueError):
    """An expected name means no collected test, or more than one."""


@dataclass(frozen=True)
class Compared:
    """Statuses against those expected."""

    agree: bool
    reason: str
    """Each difference, the first five in words."""


def status_of(word: str) -> Status:
    """The status that the benchmark's word means.

    Raises:
        ValueError: it means none.
    """
    if word not in _STATUSES:
        raise ValueError(f"{word!r} is no status of a test; there are {', '.join(_STATUSES)}")
    return _STATUSES[word]


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


def full_ids(expected: Mapping[str, str], collected: Iterable[str]) -> dict[str, Status]:
    """Full test id to status, from the benchmark's names.

    Args:
        expected: Name, which is what follows the file in a test id with `.` for `::`, perhaps cut at ` - `, to word.
        collected: Full ids of all tests of the task, those that cannot be told from each other by name included.

    Raises:
        UnclearExpectation: a name means no test, or several, or two names mean one test.
        ValueError: a word is no status.
    """
    by_name: dict[str, list[str]] = {}
    by_cut_name: dict[str, list[str]] = {}
    for test in dict.fromkeys(collected):
        name = ".".join(test.split("::")[1:])
        by_name.setdefault(name, []).append(test)
        by_cut_name.setdefault(name.split(_SEPARATOR)[0], []).append(test)
    found: dict[str, Status] = {}
    for name, word in expected.items():
        tests = by_name.get(name) or by_cut_name.get(name.split(_SEPARATOR)[0], [])
        if len(tests) != 1:
            means = "no collected test" if not tests else f"{len(tests)} tests: {tests[:5]}"
            raise UnclearExpectation(f"the expected name {name!r} means {means}; drop the task, or name tests in full")
        if tests[0] in found:
            raise UnclearExpectation(f"two expected names mean the test {tests[0]!r}; drop the task")
        found[tests[0]] = status_of(word)
    return found


def _same(wanted: Status, seen: Status | None) -> bool:
    """Versions of pytest differ in whether an unexpected pass is a pass, and an expected failure a skip."""
    groups: tuple[frozenset[Status], ...] = (frozenset({"passed", "xpassed"}), frozenset({"skipped", "xfailed"}))
    return seen == wanted or any(wanted in group and seen in group for group in groups)


def _is_extra(test: str, expected: Mapping[str, Status], seen: Mapping[str, Status]) -> bool:
    return test not in expected and seen[test] in _LISTED


def _said(seen: Status | None) -> str:
    return "missing" if seen is None else seen
