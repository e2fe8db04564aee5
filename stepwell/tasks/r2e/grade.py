"""Grades an agent's work on a task of R2E-Gym, and gives its agent a clean sandbox."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from stepwell.sandbox.protocol import Sandbox, SandboxError, SandboxFactory, SandboxLimits
from stepwell.tasks.grading.unfit import unfit
from stepwell.tasks.grading.verdict import Failure, Score
from stepwell.tasks.r2e.entrypoint import UnknownEntrypoint
from stepwell.tasks.r2e.hygiene import clean, hygiene
from stepwell.tasks.r2e.image_run import OUTPUT_BYTES, PREPARE_TIMEOUT_S, TEST_TIMEOUT_S, WORK, run_in_image
from stepwell.tasks.r2e.judging import judge
from stepwell.tasks.r2e.secrets import R2ESecrets

Create = Callable[[], Awaitable[Sandbox]]
"""Makes a fresh sandbox of the task's image."""


SPARE_S = 300.0
"""Life of a sandbox for grading beyond what its commands may take: an agent may leave thousands of files."""


def grading_limits(timeout_s: float) -> SandboxLimits:
    """Bounds of a sandbox for grading whose tests may take `timeout_s`: the same whatever a recipe says."""
    return SandboxLimits(
        wall_clock_s=2 * PREPARE_TIMEOUT_S + timeout_s + SPARE_S,
        memory_bytes=8 << 30,
        processes=512,
        output_bytes=OUTPUT_BYTES,
    )


async def sandbox_for_agent(
    factory: SandboxFactory,
    limits: SandboxLimits,
    image: Path,
    *,
    files: Mapping[str, bytes] = MappingProxyType({}),
    work: str = WORK,
) -> Sandbox:
    """A sandbox of an image without what the agent must not see. Made again, it has the same work tree.

    Args:
        factory: Makes it.
        limits: Of it.
        image: Path of the image on this machine.
        files: Laid over what the image has in the work tree.
        work: Absolute path of the work tree inside.

    Raises:
        SandboxError: it could not be made, or not be cleaned; then it is destroyed.
    """
    cleaning = hygiene(work)
    sandbox = await factory.create(files, limits, str(image), work=work, hidden=cleaning.hidden)
    try:
        await clean(sandbox, cleaning)
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
    """Grades what an agent changed, in a fresh sandbox of the image as it is.

    Args:
        secrets: Of the task.
        changed: What the agent changed: path to content, None for what it removed.
        create: Makes the sandbox, within `grading_limits`.
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
