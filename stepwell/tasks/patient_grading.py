"""Grading where nobody else tries again: a failure of the sandbox and a busy machine are no word about the task."""

from collections.abc import Mapping

from stepwell.sandbox.protocol import SandboxFactory
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Failure, Score
from stepwell.tasks.task import Task

ATTEMPTS = 3
PATIENCE = 20.0
"""Deadline, in units of the task's own. How long work may take is for whoever grades a policy's; here a test that was
slow must not look like one that fails."""


async def grade_patiently(
    task: Task, changed: Mapping[str, bytes | None], factory: SandboxFactory, *, seed: int | None
) -> Score | Failure:
    """What `grade` says within `PATIENCE` deadlines; a failure of infrastructure only if it came each time."""
    unhurried = task.model_copy(update={"timeout_s": PATIENCE * task.timeout_s})
    for _ in range(ATTEMPTS - 1):
        verdict = await grade(unhurried, changed, factory, seed=seed)
        if isinstance(verdict, Score) or verdict.kind != "infra":
            return verdict
    return await grade(unhurried, changed, factory, seed=seed)
