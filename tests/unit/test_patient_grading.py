"""Gradings that failed as infrastructure are tried again, and nothing else is."""

from collections.abc import Mapping

import pytest

from stepwell.sandbox.protocol import Sandbox, SandboxError, SandboxLimits
from stepwell.tasks.forge import forged_task
from stepwell.tasks.grading.run_tests import GRACE_S
from stepwell.tasks.grading.verdict import Failure
from stepwell.tasks.packages import recording
from stepwell.tasks.packages.recording import record
from stepwell.tasks.patient_grading import ATTEMPTS, PATIENCE, grade_patiently


class NoSandboxes:
    """A factory on a machine that gives none."""

    def __init__(self) -> None:
        self.asked = 0
        self.wall_clock_s = 0.0

    async def create(self, files: Mapping[str, bytes], limits: SandboxLimits) -> Sandbox:
        self.asked += 1
        self.wall_clock_s = limits.wall_clock_s
        raise SandboxError("no user namespaces")

    async def close(self) -> None:
        """Nothing is held."""


async def test_infrastructure_that_fails_each_time_is_said_to() -> None:
    factory = NoSandboxes()
    verdict = await grade_patiently(forged_task(0, "train", 0), {}, factory, seed=1)
    assert isinstance(verdict, Failure)
    assert verdict.kind == "infra"
    assert factory.asked == ATTEMPTS


async def test_so_is_a_recording_whose_sandbox_fails_each_time() -> None:
    factory = NoSandboxes()
    with pytest.raises(SandboxError, match="no user namespaces"):
        await record({}, [], [], factory, budget=1, cpu_s=1)
    assert factory.asked == recording.ATTEMPTS


async def test_a_busy_machine_is_given_many_times_the_deadline_of_the_task() -> None:
    factory = NoSandboxes()
    task = forged_task(0, "train", 0)
    await grade_patiently(task, {}, factory, seed=1)
    assert factory.wall_clock_s == PATIENCE * task.timeout_s + GRACE_S
    assert PATIENCE >= 10


async def test_a_broken_task_is_not_tried_again() -> None:
    factory = NoSandboxes()
    broken = forged_task(0, "train", 0).model_copy(update={"expected": ("nowhere.py::test",)})
    verdict = await grade_patiently(broken, {}, factory, seed=1)
    assert isinstance(verdict, Failure)
    assert verdict.kind == "data"
    assert factory.asked == 0
