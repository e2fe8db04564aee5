"""Runs of the tests on an agent's tree and on the reference solution, and whose fault it is when a sandbox dies."""

import random
import time
from collections.abc import Mapping

from stepwell.sandbox.protocol import SandboxError, SandboxFactory
from stepwell.tasks.grading.canaries import TestFiles, with_canaries
from stepwell.tasks.grading.graded_tree import graded_tree
from stepwell.tasks.grading.run_tests import DiedUnderTests, TestRun, run_tests
from stepwell.tasks.task import Task

DEATHS = 2
"""Sandboxes that die with the same work inside, where one with the reference solution lives, are the work's doing."""

PATIENCE = 3.0
"""Deadline of the reference solution and of a twin, in units of the task's own: work that met that once need not lose
to a busy machine."""
ALL_RUNS = 4.0
"""Wall clock of all runs of the work together, in units of the task's deadline: a grading has to end before whoever
asked for it gives up, whatever the work does."""


class Ungraded(Exception):
    """The work kept itself from being graded, and how."""


class Bench:
    """Runs a task's tests, each time in a sandbox of its own.

    Args:
        task: The task.
        changed: What the agent changed.
        factory: Makes the sandboxes.
        chance: Order of the tests and names of the canaries; tested code must not be able to foresee it.
    """

    def __init__(
        self, task: Task, changed: Mapping[str, bytes | None], factory: SandboxFactory, chance: random.Random
    ) -> None:
        self._task = task
        self._changed = changed
        self._factory = factory
        self._chance = chance
        self._left_s = ALL_RUNS * task.timeout_s

    def with_canaries(self, hidden: Mapping[str, str]) -> TestFiles:
        """Test files with canaries that have new names.

        Raises:
            BrokenTests: they cannot be made.
        """
        return with_canaries(hidden, self._task.expected, self._chance.getrandbits(63))

    async def run(self, tests: TestFiles, *, patience: float = 1.0) -> TestRun:
        """Runs the tests on the agent's tree, for at most `patience` times the task's deadline.

        Raises:
            Ungraded: no sandbox outlived them, and one with the reference solution did; or the work has had its time.
            SandboxError: the infrastructure failed.
        """
        deaths: list[DiedUnderTests] = []
        while len(deaths) < DEATHS:
            if self._left_s <= 0:
                raise Ungraded(f"the runs of its tests took more than {ALL_RUNS * self._task.timeout_s:g} s together")
            timeout_s = min(patience * self._task.timeout_s, self._left_s)
            began = time.monotonic()
            try:
                run = await self._run(self._changed, tests, timeout_s)
            except DiedUnderTests as error:
                self._left_s -= min(time.monotonic() - began, timeout_s)
                deaths.append(error)
            else:
                self._left_s -= run.duration_s  # of the tests alone: a sandbox that is slow to come is not the work's
                return run
        await self.run_reference(tests)
        raise Ungraded(f"the tested code ended its sandbox, {DEATHS} times of {DEATHS}: {deaths[-1]}")

    async def run_reference(self, tests: TestFiles) -> TestRun:
        """The same on the reference solution; on the task as it is, where it has none. No agent has a part in it.

        Raises:
            SandboxError: the infrastructure failed.
        """
        gold = {path: text.encode() for path, text in self._task.gold.items()}
        run = await self._run(gold, tests, PATIENCE * self._task.timeout_s)
        if not run.ended:
            raise SandboxError(
                f"the reference solution of {self._task.id} did not come to the end of its tests ({run.end}, status "
                f"{run.returncode}): the machine is too busy, or the task is broken; audit the task"
            )
        return run

    async def _run(self, changed: Mapping[str, bytes | None], tests: TestFiles, timeout_s: float) -> TestRun:
        plan = [*self._task.expected, *tests.canaries]
        self._chance.shuffle(plan)
        tree = graded_tree(self._task, changed, tests.files)
        return await run_tests(
            tree,
            plan,
            self._task.grader,
            self._factory,
            timeout_s=timeout_s,
            watched=sorted(tests.files),
        )
