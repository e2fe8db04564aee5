"""The disk of a store is full in the middle of a run: it waits, says why, and goes on when there is space again."""

import asyncio
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.chaos.own_services import OwnServices, ended_as, in_a_rollout_of, own_services, row, told
from tests.chaos.small_disk import SmallDisk, small_disk
from tests.chaos.table import ChaosTable
from workers.services.home import Home
from workers.services.postgres import PostgresService
from workers.services.settings import ServiceName, Settings, save_settings

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

FULL_S = 20.0


@asynccontextmanager
async def s3_on(folder: Path) -> AsyncIterator[tuple[OwnServices, SmallDisk]]:
    """Servers whose object store has a small disk."""
    home = Home(folder)
    home.create()
    save_settings(home, Settings.generate())
    with small_disk(folder / "seaweedfs" / "data", 128) as disk:
        async with own_services(folder) as servers:
            yield servers, disk


@asynccontextmanager
async def postgres_on(folder: Path) -> AsyncIterator[tuple[OwnServices, SmallDisk]]:
    """Servers whose Postgres has a small disk, onto which its new data folder is moved."""
    home, settings = Home(folder), Settings.generate()
    home.create()
    save_settings(home, settings)
    PostgresService(home, settings).prepare()
    data, made = home.data(ServiceName.POSTGRES), folder / "made"
    data.rename(made)
    with small_disk(data, 192) as disk:
        await asyncio.to_thread(subprocess.run, ["cp", "-a", f"{made}/.", str(data)], check=True)
        shutil.rmtree(made)
        async with own_services(folder) as servers:
            yield servers, disk


async def waits(client: Client) -> str:
    """Why activities are not done, as an operator reads it in the Temporal UI: last failures and last heartbeats."""
    words: list[str] = []
    async for workflow in client.list_workflows("ExecutionStatus = 'Running'"):
        described = await client.get_workflow_handle(workflow.id).describe()
        for pending in described.raw_description.pending_activities:
            words.append(pending.last_failure.message)
            words += [payload.data.decode(errors="replace") for payload in pending.heartbeat_details.payloads]
    return "\n".join(word for word in words if word)


@pytest.mark.parametrize("service", [ServiceName.S3, ServiceName.POSTGRES])
async def test_run_waits_for_space_and_goes_on(
    service: ServiceName, undisturbed: dict[str, object], tmp_path: Path, chaos_table: ChaosTable
) -> None:
    stores = s3_on if service is ServiceName.S3 else postgres_on
    async with stores(tmp_path / "home") as (servers, disk):
        client = await Client.connect(servers.addresses.temporal)
        run = servers.run(f"full-{service}", tmp_path)
        try:
            await run.until(in_a_rollout_of(0))
            at = time.time()
            disk.fill()
            detection_s = await told(run, f"the disk of {service} is full", within_s=30)
            deadline = time.monotonic() + 120
            while "free space" not in (why := await waits(client)) and "no connection" not in why:
                assert time.monotonic() < deadline, f"no cause in Temporal, but {why!r}\n{run.output}"
                await asyncio.sleep(0.5)
            await asyncio.sleep(max(0.0, FULL_S - (time.time() - at)))
            assert run.process is not None
            assert run.process.poll() is None, run.output
            disk.grow(1024)
            await told(run, f"the disk of {service} has space again", within_s=60)
            events = await ended_as(undisturbed, run)
        finally:
            run.kill()
    chaos_table.add(row(events, "step 0 rolls out", service, f"disk full, {FULL_S:.0f} s", at, detection_s=detection_s))
