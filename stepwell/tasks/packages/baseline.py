"""A package without a defect: which of its tests can be trusted, what they run, and what they see."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from stepwell.sandbox.protocol import SandboxError, SandboxFactory
from stepwell.tasks.grading.canaries import with_canaries
from stepwell.tasks.grading.run_tests import run_tests
from stepwell.tasks.packages.recording import RecordedTest, Recording, Unfinished, record
from stepwell.tasks.packages.sources import PackageTree

SUITE_TIMEOUT_S = 300.0
"""Wall clock of all tests of the package as it is."""
SUITE_LINES = 50_000_000
"""Lines that all tests may run."""
SPARE_LINES = 100_000
BUDGET_FACTOR = 2


@dataclass(frozen=True)
class Baseline:
    """What the tests of a package do when nothing is wrong."""

    tree: PackageTree
    tests: dict[str, RecordedTest]
    """The tests that pass each time, by id, in order; calls that differ from one time to the next are left out."""
    budget: int
    """Lines that the same tests may run with a defect before it counts as endless."""

    def covering(self, path: str, lines: range) -> list[str]:
        """Ids of the tests that run one of the lines."""
        wanted = frozenset(lines)
        return [test for test, said in self.tests.items() if not wanted.isdisjoint(said.lines.get(path, ()))]


async def baseline_of(tree: PackageTree, factory: SandboxFactory) -> Baseline:
    """Runs the tests of a package five times: recorded and graded, twice each, and with canaries among them.

    Raises:
        SandboxError: a sandbox failed, or no test passes in it.
    """
    first, second = await asyncio.gather(_recorded(tree, factory), _recorded(tree, factory))
    found = [test for test in first.passed if test in set(second.passed)]
    stable = await _gradable(tree, found, factory)
    if not stable:
        seen = list({test.error for test in first.tests.values() if test.error})[:3]
        raise SandboxError(
            f"no test of {tree.source.name} passes each time in the sandbox, where it has pytest and no other "
            f"package: {len(first.tests)} were found; errors: {seen}"
        )
    tests = {test: agreed(first.tests[test], second.tests[test]) for test in stable}
    return Baseline(tree, tests, BUDGET_FACTOR * max(first.spent, second.spent) + SPARE_LINES)


def agreed(first: RecordedTest, second: RecordedTest) -> RecordedTest:
    """What two recordings of a test have in common: calls only if all are alike, lines of both."""
    lines = {path: first.lines.get(path, frozenset()) | found for path, found in (first.lines | second.lines).items()}
    calls = first.calls if first.calls == second.calls else ()
    return first.model_copy(update={"lines": lines, "calls": calls})


async def _recorded(tree: PackageTree, factory: SandboxFactory) -> Recording:
    recording = await record(tree.files, tree.layout.modules, tree.layout.tests, factory, budget=SUITE_LINES)
    if isinstance(recording, Unfinished):
        raise SandboxError(f"the tests of {tree.source.name} cannot be recorded: {recording.cause}")
    return recording


async def _gradable(tree: PackageTree, tests: Sequence[str], factory: SandboxFactory) -> list[str]:
    """Those that pass twice under the grader's runner too, and whose canaries fail."""
    files = {path: text.encode() for path, text in tree.files.items()}
    stable = list(tests)
    for _ in range(2):
        run = await run_tests(files, stable, "pytest", factory, timeout_s=SUITE_TIMEOUT_S)
        stable = [test for test in stable if test in run.tests and run.tests[test].passed]
    if not stable:
        return []
    hidden = {path: tree.files[path] for path in {test.partition("::")[0] for test in stable}}
    made = with_canaries(hidden, stable, seed=0)
    bent = files | {path: text.encode() for path, text in made.files.items()}
    run = await run_tests(bent, list(made.canaries), "pytest", factory, timeout_s=SUITE_TIMEOUT_S)
    loose = {made.canaries[test] for test, said in run.tests.items() if said.passed}
    return [test for test in stable if test not in loose]
