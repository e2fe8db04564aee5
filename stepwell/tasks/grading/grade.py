"""Grades an agent's work on a task, in a sandbox in which the agent never was.

What tested code in the tests' own process could still forge: it shares the interpreter with the runner, so it can look
for the runner's frames and write what it finds there. Canaries catch those who bend equality, `assert` or the runner as
a whole; who reads the runner's memory and answers test by test is not caught.
"""

import random
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from stepwell.sandbox.protocol import ExecEnd, ExecResult, Sandbox, SandboxError, SandboxFactory, SandboxLimits
from stepwell.tasks.grading.canaries import BrokenTests, functions_of, with_canaries
from stepwell.tasks.grading.graded_tree import graded_tree
from stepwell.tasks.grading.verdict import Failure, Outcome, Score
from stepwell.tasks.task import Task

OUTPUT_BYTES = 1 << 20
GRACE_S = 60.0
"""Life of a grader's sandbox beyond the task's own wall clock."""


@dataclass(frozen=True)
class _Reported:
    """What a runner said of one test."""

    passed: bool
    detail: str


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
        tests = with_canaries(task.hidden, task.expected, seed)
        _check_expected(task)
    except BrokenTests as error:
        return Failure(kind="data", cause=str(error))
    plan = [*task.expected, *tests.canaries]
    random.Random(seed).shuffle(plan)
    tree = graded_tree(task, changed, tests.files)
    nonce = secrets.token_hex(16)
    limits = SandboxLimits(wall_clock_s=task.timeout_s + GRACE_S, output_bytes=OUTPUT_BYTES)
    try:
        sandbox = await factory.create(tree, limits)
        try:
            result = await sandbox.exec(
                _command(task.grader), timeout_s=task.timeout_s, stdin="\n".join([nonce, *plan]).encode()
            )
            altered = [path for path, text in tests.files.items() if await _content(sandbox, path) != text.encode()]
        finally:
            await sandbox.destroy()
    except SandboxError as error:
        return Failure(kind="infra", cause=str(error))
    answer = _read_answer(result.output, nonce, plan)
    if not answer.started:
        said = result.output[-500:].decode(errors="replace")
        return Failure(kind="infra", cause=f"the {task.grader} runner did not start ({result.end}): {said!r}")
    return _judge(task, tests.canaries, answer, result, altered)


@dataclass(frozen=True)
class _Answer:
    """What a runner said before it ended."""

    started: bool
    """It was there before any tested code."""
    ended: bool
    tests: dict[str, _Reported]


def _read_answer(output: bytes, nonce: str, plan: list[str]) -> _Answer:
    """Reads the lines that carry the nonce; all others were printed by somebody else."""
    started = ended = False
    tests: dict[str, _Reported] = {}
    for line in output.decode(errors="replace").split("\n"):
        match line.split("\t"):
            case [said, "start"] if said == nonce:
                started = True
            case [said, "end"] if said == nonce:
                ended = True
            case [said, number, outcome, *detail] if said == nonce and number.isdigit() and int(number) < len(plan):
                tests[plan[int(number)]] = _Reported(outcome == "passed", " ".join(detail))
            case _:
                continue
    return _Answer(started, ended, tests)


def _judge(task: Task, canaries: tuple[str, ...], answer: _Answer, result: ExecResult, altered: list[str]) -> Score:
    """The score of a runner's answer, with the first reason that makes it 0."""
    outcomes: dict[str, Outcome] = {}
    for test in task.expected:
        said = answer.tests.get(test)
        outcomes[test] = "missing" if said is None else "passed" if said.passed else "failed"
    reason = None
    if result.end is ExecEnd.TIMEOUT:
        reason = f"the tests did not end within {task.timeout_s} s"
    elif not answer.ended:
        reason = f"the tested code ended the runner before it could report (status {result.returncode})"
    elif altered:
        reason = f"the tested code changed hidden tests while they ran: {altered}"
    elif not all(outcome == "passed" for outcome in outcomes.values()):
        wrong = [test for test, outcome in outcomes.items() if outcome != "passed"]
        details = [f"{test}: {answer.tests[test].detail if test in answer.tests else 'not reported'}" for test in wrong]
        reason = f"{len(wrong)} of {len(outcomes)} tests did not pass: " + "; ".join(details[:5])
    else:
        bent = [test for test in canaries if test not in answer.tests or answer.tests[test].passed]
        if bent:
            reason = f"{len(bent)} of {len(canaries)} canaries, which must fail, did not: {bent[:5]}"
    if reason is None:
        return Score(value=1.0, outcomes=outcomes, report=f"all {len(outcomes)} tests passed")
    return Score(value=0.0, outcomes=outcomes, report=reason)


def _check_expected(task: Task) -> None:
    """Raises BrokenTests if the task expects nothing, or a function that its tests do not have."""
    if not task.expected:
        raise BrokenTests("the task expects no test to pass")
    if task.grader == "calls":
        for test in task.expected:
            path, _, function = test.partition("::")
            if function not in functions_of(task.hidden[path]):
                raise BrokenTests(f"the hidden file {path!r} has no function {function!r}")


def _command(grader: Literal["calls", "pytest"]) -> list[str]:
    isolation = ["-I", "-S"] if grader == "calls" else ["-I"]
    return ["python3", *isolation, "-c", _runner(grader)]


@cache
def _runner(grader: str) -> str:
    """Source of a runner."""
    return Path(__file__).with_name(f"run_{grader}.py").read_text()


async def _content(sandbox: Sandbox, path: str) -> bytes | None:
    try:
        return await sandbox.read_file(path)
    except FileNotFoundError:
        return None
