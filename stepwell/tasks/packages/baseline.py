"""A package without a defect: which of its tests can be trusted, what they run, and what they see."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepwell.sandbox.protocol import ExecEnd, SandboxError, SandboxFactory
from stepwell.tasks.grading.canaries import with_canaries
from stepwell.tasks.grading.run_tests import TestRun, run_tests
from stepwell.tasks.packages.recording import RecordedTest, Recording, Unfinished, record
from stepwell.tasks.packages.sources import PackageTree

SUITE_TIMEOUT_S = 3600.0
"""Wall clock of all tests of the package as it is; a machine that is slower is no word about them."""
SUITE_CPU_S = 1800.0
SUITE_LINES = 50_000_000
"""Lines that all tests may run."""
SPARE_LINES = 100_000
BUDGET_FACTOR = 2
SPARE_CPU_S = 20.0
CPU_FACTOR = 10
"""Far above `BUDGET_FACTOR`, so that what ends by its lines is never taken for what no line is part of."""


@dataclass(frozen=True)
class Baseline:
    """What the tests of a package do when nothing is wrong."""

    tree: PackageTree
    tests: dict[str, RecordedTest]
    """The tests that count, by id, in order; calls that differ from one time to the next are left out."""
    set_aside: dict[str, str]
    """The other tests, to the reason why they do not count."""
    budget: int
    """Lines that the same tests may run with a defect before it counts as endless."""
    cpu_s: float
    """Time of the processor likewise, where no line runs; measured, in seconds."""

    def covering(self, path: str, lines: range) -> list[str]:
        """Ids of the tests that run one of the lines."""
        wanted = frozenset(lines)
        return [test for test, said in self.tests.items() if not wanted.isdisjoint(said.lines.get(path, ()))]


async def baseline_of(tree: PackageTree, factory: SandboxFactory) -> Baseline:
    """Runs the tests of a package five times: recorded and graded, twice each, and with canaries among them.

    Tests that ask the world outside do not count, however they ended: what decides is what they call, not how long it
    took, so that the same tests count on a busy machine and on the next one.

    Raises:
        SandboxError: a sandbox failed, or no test passes in it.
    """
    first, second = await asyncio.gather(_recorded(tree, factory), _recorded(tree, factory))
    set_aside = _set_aside(first, second)
    found = [test for test in first.passed if test not in set_aside]
    set_aside |= await _ungradable(tree, found, factory)
    stable = [test for test in found if test not in set_aside]
    if not stable:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(Counter(set_aside.values()).items()))
        seen = list({test.error for test in first.tests.values() if test.error})[:3]
        raise SandboxError(
            f"no test of {tree.source.name} counts in the sandbox, which has pytest and no other package: of "
            f"{len(first.tests)} that were found {reasons or 'none ran'}; errors: {seen}"
        )
    tests = {test: agreed(first.tests[test], second.tests[test]) for test in stable}
    spent = sum(max(first.tests[test].spent, second.tests[test].spent) for test in stable)
    cpu_s = CPU_FACTOR * max(first.cpu_s, second.cpu_s) + SPARE_CPU_S
    return Baseline(tree, tests, set_aside, BUDGET_FACTOR * spent + SPARE_LINES, cpu_s)


def _set_aside(first: Recording, second: Recording) -> dict[str, str]:
    """Recorded tests that do not count, to the reason."""
    reasons: dict[str, str] = {}
    for test in sorted(first.tests.keys() | second.tests.keys()):
        seen = [said for one in (first, second) if (said := one.tests.get(test)) is not None]
        asked = next((said.asked for said in seen if said.asked is not None), None)
        if asked is not None:
            reasons[test] = "ask the time, chance or another process"
        elif len(seen) < 2 or not all(said.passed and not said.failed for said in seen):
            reasons[test] = "do not pass each time"
    return reasons


def agreed(first: RecordedTest, second: RecordedTest) -> RecordedTest:
    """What two recordings of a test have in common: calls only if all are alike, lines of both."""
    lines = {path: first.lines.get(path, frozenset()) | found for path, found in (first.lines | second.lines).items()}
    calls = first.calls if first.calls == second.calls else ()
    return first.model_copy(update={"lines": lines, "calls": calls})


async def _recorded(tree: PackageTree, factory: SandboxFactory) -> Recording:
    recording = await record(
        tree.files, tree.layout.modules, tree.layout.tests, factory, budget=SUITE_LINES, cpu_s=SUITE_CPU_S
    )
    if isinstance(recording, Unfinished):
        raise SandboxError(f"the tests of {tree.source.name} cannot be recorded: {recording.cause}")
    return recording


async def _ungradable(tree: PackageTree, tests: Sequence[str], factory: SandboxFactory) -> dict[str, str]:
    """Those that do not pass twice under the grader's runner, or one of whose canaries does not fail, with the reason.

    Raises:
        SandboxError: a sandbox failed, or the machine had no time for the tests.
    """
    if not tests:
        return {}
    files = {path: text.encode() for path, text in tree.files.items()}
    reasons: dict[str, str] = {}
    for _ in range(2):
        run = await _graded(tree, files, [test for test in tests if test not in reasons], factory)
        failed = [test for test in tests if test not in run.tests or not run.tests[test].passed]
        reasons |= {test: "do not pass each time" for test in failed if test not in reasons}
    stable = [test for test in tests if test not in reasons]
    hidden = {path: tree.files[path] for path in {test.partition("::")[0] for test in stable}}
    made = with_canaries(hidden, stable, seed=0)
    bent = files | {path: text.encode() for path, text in made.files.items()}
    run = await _graded(tree, bent, list(made.canaries), factory)
    loose = {made.canaries[test] for test, said in run.tests.items() if said.passed}
    return reasons | {test: "pass when something else is expected" for test in stable if test in loose}


async def _graded(
    tree: PackageTree, files: Mapping[str, bytes], tests: Sequence[str], factory: SandboxFactory
) -> TestRun:
    run = await run_tests(files, tests, "pytest", factory, timeout_s=SUITE_TIMEOUT_S)
    if run.end is ExecEnd.TIMEOUT:
        raise SandboxError(
            f"the tests of {tree.source.name} had not ended after {SUITE_TIMEOUT_S:g} s, and were recorded before: the "
            "machine is too busy; try again"
        )
    return run
