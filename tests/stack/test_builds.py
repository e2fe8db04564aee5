"""A new build of the workflows takes over a run that is under way, and an old one does not take it back by itself."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stepwell.contracts.operators import StopNote
from stepwell.events import StepDispatched
from tests.stack.steering import Helm
from tests.stack.tiny_run import Start
from workers.build import build_id, take_over
from workflows.ids import run_id

pytestmark = pytest.mark.timeout(300)

NEXT = "the-next-build"


@contextmanager
def control_worker(home: Path, log: Path, build: str, *flags: str) -> Iterator[None]:
    """A control worker of a build, for the block."""
    arguments = [sys.executable, "-m", "cli.main", "worker", "control", "--parent", str(os.getpid()), *flags]
    environment = {**os.environ, "STEPWELL_HOME": str(home), "STEPWELL_BUILD_ID": build}
    with log.open("ab") as out, subprocess.Popen(arguments, stdout=out, stderr=out, env=environment) as process:
        try:
            yield
        finally:
            process.terminate()


async def decides(helm: Helm, run: str) -> str:
    """Build that made the workflow's last decision."""
    described = await helm.client.get_workflow_handle(run_id(run)).describe()
    return described.raw_description.workflow_execution_info.versioning_info.deployment_version.build_id


async def until_it_decides(helm: Helm, run: str, build: str) -> None:
    deadline = time.monotonic() + 60.0
    while (found := await decides(helm, run)) != build:
        assert time.monotonic() < deadline, f"{found} decides"
        await asyncio.sleep(0.2)


async def test_a_new_build_takes_over_a_running_run(
    start_run: Start, helm: Helm, services_home: Path, tmp_path: Path
) -> None:
    run = start_run("upgraded", "run.max_steps=200")
    await run.until(lambda events: any(isinstance(each.event, StepDispatched) for each in events))
    await until_it_decides(helm, run.name, build_id())
    new_log, old_log = tmp_path / "new.log", tmp_path / "old.log"
    with control_worker(services_home, new_log, NEXT):
        try:
            await until_it_decides(helm, run.name, NEXT)
            with control_worker(services_home, old_log, build_id()):
                deadline = time.monotonic() + 60.0
                while "was superseded by the-next-build" not in old_log.read_text():
                    assert time.monotonic() < deadline, old_log.read_text()
                    await asyncio.sleep(0.2)
            steps = sum(isinstance(each.event, StepDispatched) for each in await run.events())
            await run.until(lambda events: sum(isinstance(each.event, StepDispatched) for each in events) > steps + 1)
            assert await decides(helm, run.name) == NEXT
            await helm.ask(run.name, "stop", StopNote(reason="seen enough"))
            assert await run.finish() == 0, run.output
        finally:
            await take_over(helm.client, build_id(), again=True)  # the tests after this one have its workers
    assert run.verify().returncode == 0
