"""Grading where nobody else tries again: a failure of the sandbox is no word about the task."""

from collections.abc import Mapping

from stepwell.sandbox.protocol import SandboxFactory
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Failure, Score
from stepwell.tasks.task import Task

ATTEMPTS = 3


async def grade_patiently(
    task: Task, changed: Mapping[str, bytes | None], factory: SandboxFactory, *, seed: int | None
) -> Score | Failure:
    """What `grade` says; a failure of infrastructure only if it came each time."""
    for _ in range(ATTEMPTS - 1):
        verdict = await grade(task, changed, factory, seed=seed)
        if isinstance(verdict, Score) or verdict.kind != "infra":
            return verdict
    return await grade(task, changed, factory, seed=seed)
