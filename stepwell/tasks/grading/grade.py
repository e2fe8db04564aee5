"""Grades an agent's work on a task, in a sandbox in which the agent never was.

What tested code in the tests' own process could still forge: it shares the interpreter with the runner, so it can look
for the runner's frames and write what it finds there. Canaries catch those who bend equality, `assert` or the runner as
a whole; who reads the runner's memory and answers test by test is not caught.
"""

import random
from collections.abc import Mapping
from functools import lru_cache

from stepwell.sandbox.protocol import ExecEnd, SandboxError, SandboxFactory
from stepwell.tasks.grading.canaries import BrokenTests, TestFiles, functions_of, with_canaries
from stepwell.tasks.grading.graded_tree import graded_tree
from stepwell.tasks.grading.run_tests import TestRun, run_tests
from stepwell.tasks.grading.verdict import Failure, Outcome, Score
from stepwell.tasks.task import Task


async def grade(
    task: Task, changed: Mapping[str, bytes | None], factory: SandboxFactory, *, seed: int = 0
) -> Score | Failure:
    """Grades the tree that `changed` makes of the task's files.

    Args:
        task: The task.
        changed: What the agent changed: path to content, None for what it removed.
        factory: Makes the fresh sandbox; for `pytest` tasks, one with pytest in its site-packages.
        seed: Order of the tests and names of the canaries depend on it; an honest verdict does not.

    Returns:
        `Score` if the runner started, whatever the tested code did to it. `Failure("infra")` if a sandbox could not be
        made, died, or did not start the runner; `Failure("data")` if the task's tests are broken.
    """
    try:
        tests = _tests_of(tuple(task.hidden.items()), task.expected, seed)
        _check_expected(task)
    except BrokenTests as error:
        return Failure(kind="data", cause=str(error))
    plan = [*task.expected, *tests.canaries]
    random.Random(seed).shuffle(plan)
    tree = graded_tree(task, changed, tests.files)
    try:
        run = await run_tests(tree, plan, task.grader, factory, timeout_s=task.timeout_s, watched=list(tests.files))
    except SandboxError as error:
        return Failure(kind="infra", cause=str(error))
    return _judge(task, tests.canaries, run)


@lru_cache(maxsize=256)
def _tests_of(hidden: tuple[tuple[str, str], ...], expected: tuple[str, ...], seed: int) -> TestFiles:
    """Canaries of a task: all rollouts of a group share them if they are graded by one seed."""
    return with_canaries(dict(hidden), expected, seed)


def _judge(task: Task, canaries: Mapping[str, str], run: TestRun) -> Score:
    """The score of a run, with the first reason that makes it 0."""
    outcomes: dict[str, Outcome] = {}
    for test in task.expected:
        said = run.tests.get(test)
        outcomes[test] = "missing" if said is None else "passed" if said.passed else "failed"
    reason = None
    if run.end is ExecEnd.TIMEOUT:
        reason = f"the tests did not end within {task.timeout_s} s"
    elif not run.ended:
        reason = f"the tested code ended the runner before it could report (status {run.returncode})"
    elif run.altered:
        reason = f"the tested code changed hidden tests while they ran: {run.altered}"
    elif not all(outcome == "passed" for outcome in outcomes.values()):
        wrong = [test for test, outcome in outcomes.items() if outcome != "passed"]
        details = [f"{test}: {run.tests[test].detail if test in run.tests else 'not reported'}" for test in wrong]
        reason = f"{len(wrong)} of {len(outcomes)} tests did not pass: " + "; ".join(details[:5])
    else:
        bent = [test for test in canaries if test not in run.tests or run.tests[test].passed]
        if bent:
            reason = f"{len(bent)} of {len(canaries)} canaries, which must fail, did not: {bent[:5]}"
    if reason is None:
        return Score(value=1.0, outcomes=outcomes, report=f"all {len(outcomes)} tests passed")
    return Score(value=0.0, outcomes=outcomes, report=reason, timed_out=run.end is ExecEnd.TIMEOUT)


def _check_expected(task: Task) -> None:
    """Raises BrokenTests if the task expects nothing, or a function that its tests do not have."""
    if not task.expected:
        raise BrokenTests("the task expects no test to pass")
    if task.grader == "calls":
        for test in task.expected:
            path, _, function = test.partition("::")
            if function not in functions_of(task.hidden[path]):
                raise BrokenTests(f"the hidden file {path!r} has no function {function!r}")
