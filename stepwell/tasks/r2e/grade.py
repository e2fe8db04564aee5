"""Grades an agent's work on a task of R2E-Gym, and gives its agent a clean sandbox."""

from collections.abc import Awaitable, Callable, Mapping

from stepwell.sandbox.protocol import Sandbox, SandboxError
from stepwell.tasks.grading.unfit import unfit
from stepwell.tasks.grading.verdict import Failure, Score
from stepwell.tasks.r2e.entrypoint import UnknownEntrypoint
from stepwell.tasks.r2e.hygiene import clean, hygiene
from stepwell.tasks.r2e.image_run import TEST_TIMEOUT_S, WORK, run_in_image
from stepwell.tasks.r2e.judging import judge
from stepwell.tasks.r2e.secrets import R2ESecrets

Create = Callable[[], Awaitable[Sandbox]]
"""Makes a fresh sandbox of the task's image."""


async def sandbox_for_agent(create: Create, *, work: str = WORK) -> Sandbox:
    """A sandbox without what the agent must not see; `create` hides what lies outside the work tree (`hygiene`).

    Raises:
        SandboxError: it could not be made, or not be cleaned; then it is destroyed.
    """
    sandbox = await create()
    try:
        await clean(sandbox, hygiene(work))
    except BaseException:
        await sandbox.destroy()
        raise
    return sandbox


async def grade_in_image(
    secrets: R2ESecrets,
    changed: Mapping[str, bytes | None],
    create: Create,
    *,
    work: str = WORK,
    timeout_s: float = TEST_TIMEOUT_S,
) -> Score | Failure:
    """Grades what an agent changed, in a fresh sandbox of the image as it is, keeping `image_run.OUTPUT_BYTES`.

    Args:
        secrets: Of the task.
        changed: What the agent changed: path to content, None for what it removed.
        create: Makes the sandbox.
        work: Absolute path of the work tree inside.
        timeout_s: Wall clock of the tests.
    """
    expected = secrets.expected_tests()
    reason = unfit(changed)
    if reason is not None:
        return Score(value=0.0, outcomes=dict.fromkeys(expected.expected, "missing"), report=reason)
    try:
        sandbox = await create()
        try:
            run = await run_in_image(sandbox, secrets.tests, expected, changed, work=work, timeout_s=timeout_s)
        finally:
            await sandbox.destroy()
    except SandboxError as error:
        return Failure(kind="infra", cause=str(error))
    except UnknownEntrypoint as error:
        return Failure(kind="data", cause=str(error))
    return judge(run, expected, timeout_s=timeout_s)
