"""Grades an agent's work on a task, in sandboxes in which the agent never was.

The hidden tests run on the agent's tree, with canaries among them. Work that passes is run again on twins of the
tests, where other things are expected, and has to fail there exactly what was changed. Who only bends the tests, the
runner or what it reports cannot tell a twin from the original. docs/grading.md says what is left.
"""

import random
import secrets
from collections.abc import Mapping
from functools import lru_cache

from stepwell.sandbox.protocol import SandboxError, SandboxFactory
from stepwell.tasks.grading.bench import PATIENCE, Bench, Ungraded
from stepwell.tasks.grading.canaries import BrokenTests, TestFiles, functions_of
from stepwell.tasks.grading.graded_tree import put_back
from stepwell.tasks.grading.judge import (
    NAMED,
    Suspects,
    Trial,
    bent_canaries,
    conviction,
    fault_of,
    outcomes_of,
    strays_of,
    told_apart,
    unmoved_by,
)
from stepwell.tasks.grading.twins import Twin, Unit, draw_rounds, twin_of, units_of
from stepwell.tasks.grading.unfit import unfit
from stepwell.tasks.grading.verdict import Failure, Outcome, Score
from stepwell.tasks.task import Task

DRAWS = 3
"""Most times that twins are drawn: again, without them, where the reference solution passed changed tests too."""


async def grade(
    task: Task, changed: Mapping[str, bytes | None], factory: SandboxFactory, *, seed: int | None = None
) -> Score | Failure:
    """Grades the tree that `changed` makes of the task's files.

    Args:
        task: The task.
        changed: What the agent changed: path to content, None for what it removed.
        factory: Makes the fresh sandboxes; for `pytest` tasks, with pytest in their site-packages.
        seed: Order of the tests, names of the canaries and choice of the twins depend on it; an honest verdict does
            not. By default a secret, since tested code that knew it would know which run is the twin.

    Returns:
        `Score` if the runner started, whatever the tested code did to it. `Failure("infra")` if a sandbox could not be
        made, did not start the runner, or died as one with the reference solution also did; `Failure("data")` if the
        task's tests are broken.
    """
    chance = random.Random(secrets.randbits(128) if seed is None else seed)
    bench = Bench(task, changed, factory, chance)
    grading = _Grading(task, bench, chance, put_back(task, changed))
    try:
        tests = bench.with_canaries(task.hidden)
        _check_expected(task)
        units = _units_of(tuple(task.hidden.items()), task.expected)
        wrong = unfit(changed)
        if wrong is not None:
            return grading.nothing(wrong, dict.fromkeys(task.expected, "missing"))
        return await grading.score(tests, units)
    except BrokenTests as error:
        return Failure(kind="data", cause=str(error))
    except Ungraded as error:
        return grading.nothing(str(error), dict.fromkeys(task.expected, "missing"))
    except SandboxError as error:
        return Failure(kind="infra", cause=str(error))


class _Grading:
    """One grading."""

    def __init__(self, task: Task, bench: Bench, chance: random.Random, undone: list[str]) -> None:
        self._task = task
        self._bench = bench
        self._chance = chance
        self._undone = undone

    def nothing(self, reason: str, outcomes: dict[str, Outcome], *, timed_out: bool = False) -> Score:
        """A score of 0."""
        if self._undone:
            more = f" and {len(self._undone) - NAMED} more" if len(self._undone) > NAMED else ""
            reason += f"; put back before the tests: {', '.join(self._undone[:NAMED])}{more}"
        return Score(value=0.0, outcomes=outcomes, report=reason, timed_out=timed_out)

    async def score(self, tests: TestFiles, units: tuple[Unit, ...]) -> Score:
        """The score of the work, once its tests can be run."""
        task = self._task
        run = await self._bench.run(tests)
        outcomes = outcomes_of(run, task.expected)
        fault = fault_of(run, task.expected)
        if fault is not None:
            return self.nothing(fault, outcomes, timed_out=run.end == "timeout")
        bent = bent_canaries(run, tests.canaries)
        fault = await self._convict(tests, bent)
        if fault is None:
            fault = await self._twins(units)
        if fault is not None:
            return self.nothing(fault, outcomes)
        return Score(value=1.0, outcomes=outcomes, report=f"all {len(outcomes)} tests passed")

    async def _convict(self, tests: TestFiles, *suspects: Suspects | None) -> str | None:
        """The reason, if the reference solution does otherwise with the same test files."""
        found = [one for one in suspects if one is not None]
        if not found:
            return None
        reference = await self._bench.run_reference(tests)
        for one in found:
            convicting = told_apart(one, reference)
            if convicting:
                return conviction(one, convicting)
        return None

    async def _twins(self, units: tuple[Unit, ...]) -> str | None:
        """Why the work is not what passed the tests, or None."""
        for _ in range(DRAWS):
            loose: frozenset[str] = frozenset()
            for changed in draw_rounds(units, self._chance):
                trial = await self._twin(twin_of(self._task.hidden, changed, self._chance))
                if trial.conviction is not None:
                    return trial.conviction
                loose |= trial.loose
            if not loose:
                return None
            units = tuple(unit for unit in units if loose.isdisjoint(unit.tests))
        return None

    async def _twin(self, twin: Twin) -> Trial:
        """One run where some of the expectations are others."""
        tests = self._bench.with_canaries(twin.files)
        run = await self._bench.run(tests, patience=PATIENCE)
        fault = fault_of(run, ())
        if fault is not None:
            return Trial(f"in a run where other results were expected of some tests, {fault}")
        unmoved, strays = unmoved_by(twin, run), strays_of(twin, run, self._task.expected)
        convicted = await self._convict(tests, unmoved, strays)
        return Trial(convicted, frozenset(unmoved.tests if unmoved else ()))


@lru_cache(maxsize=256)
def _units_of(hidden: tuple[tuple[str, str], ...], expected: tuple[str, ...]) -> tuple[Unit, ...]:
    """All rollouts of a group share them."""
    return units_of(dict(hidden), expected)


def _check_expected(task: Task) -> None:
    """Raises BrokenTests if the task expects nothing, or a function that its tests do not have."""
    if not task.expected:
        raise BrokenTests("the task expects no test to pass")
    if task.grader == "calls":
        functions = {path: functions_of(source) for path, source in task.hidden.items()}
        for test in task.expected:
            path, _, function = test.partition("::")
            if function not in functions[path]:
                raise BrokenTests(f"the hidden file {path!r} has no function {function!r}")
