"""Servers killed, stopped or away in a busy run: it goes on, and ends as an undisturbed one does, to the bit."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.own_services import (
    OwnServices,
    about_to_train,
    ended_as,
    in_a_rollout_of,
    own_services,
    row,
    told,
)
from tests.chaos.table import ChaosTable
from tests.stack.tiny_run import TinyRun
from workers.services.settings import ServiceName
from workers.services.watch import watched

pytestmark = pytest.mark.timeout(600)

TEMPORAL, POSTGRES, S3 = ServiceName.TEMPORAL, ServiceName.POSTGRES, ServiceName.S3
AWAY_S = 8.0
STOPPED_S = 15.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OwnServices]:
    """The module's own servers."""
    async with own_services(tmp_path_factory.mktemp("services")) as servers:
        yield servers


@contextmanager
def running(servers: OwnServices, name: str, folder: Path) -> Iterator[TinyRun]:
    """A run that ends with the block, whatever becomes of it."""
    run = servers.run(name, folder)
    try:
        yield run
    finally:
        run.kill()


async def test_run_waits_for_servers_that_are_all_away_and_says_so(
    servers: OwnServices, undisturbed: dict[str, object], tmp_path: Path, chaos_table: ChaosTable
) -> None:
    with running(servers, "all-away", tmp_path) as run:
        await run.until(in_a_rollout_of(0))
        supervisor = servers.supervisor()
        supervisor.suspend()  # nobody starts them again for a while
        at = time.time()
        try:
            for service in (POSTGRES, TEMPORAL, S3):
                servers.signal(service, signal.SIGKILL)
            detection_s = max([await told(run, f"{each} does not answer", within_s=30) for each in ServiceName])
            await asyncio.sleep(max(0.0, AWAY_S - (time.time() - at)))
        finally:
            supervisor.resume()
        for service in ServiceName:
            await told(run, f"{service} answers again", within_s=60)
        events = await ended_as(undisturbed, run)
        assert "supervisor" not in run.output
        chaos_table.add(
            row(events, "step 0 rolls out", "all three servers", "SIGKILL, 8 s away", at, detection_s=detection_s)
        )


@pytest.mark.long
@pytest.mark.parametrize(
    ("service", "number", "moment"),
    [
        (TEMPORAL, signal.SIGKILL, "rollouts"),
        (TEMPORAL, signal.SIGKILL, "training"),
        (POSTGRES, signal.SIGKILL, "rollouts"),
        (POSTGRES, signal.SIGQUIT, "training"),  # as by `pg_ctl stop -m immediate`
        (S3, signal.SIGKILL, "training"),
    ],
)
async def test_run_ends_as_undisturbed_after_a_servers_death(
    service: ServiceName,
    number: signal.Signals,
    moment: str,
    servers: OwnServices,
    undisturbed: dict[str, object],
    tmp_path: Path,
    chaos_table: ChaosTable,
) -> None:
    with running(servers, f"died-{service}-{moment}", tmp_path) as run:
        if moment == "training":
            async with about_to_train(run, 1):
                at = time.time()
                servers.signal(service, number)
        else:
            await run.until(in_a_rollout_of(1))
            at = time.time()
            servers.signal(service, number)
        events = await ended_as(undisturbed, run)
        chaos_table.add(row(events, f"step 1, {moment}", service, number.name, at))


@pytest.mark.long
@pytest.mark.parametrize("service", ServiceName)
async def test_run_ends_as_undisturbed_after_a_server_that_was_stopped(
    service: ServiceName,
    servers: OwnServices,
    undisturbed: dict[str, object],
    tmp_path: Path,
    chaos_table: ChaosTable,
) -> None:
    with running(servers, f"stopped-{service}", tmp_path) as run:
        await run.until(in_a_rollout_of(0))
        at = time.time()
        servers.signal(service, signal.SIGSTOP)
        try:
            detection_s = await told(run, f"{service} does not answer", within_s=STOPPED_S)
            await asyncio.sleep(max(0.0, STOPPED_S - (time.time() - at)))
        finally:
            servers.signal(service, signal.SIGCONT)
        await told(run, f"{service} answers again", within_s=60)
        events = await ended_as(undisturbed, run)
        chaos_table.add(row(events, "step 0 rolls out", service, "SIGSTOP, 15 s", at, detection_s=detection_s))


@pytest.mark.long
async def test_workers_that_start_while_servers_are_away_wait_for_them(
    servers: OwnServices, undisturbed: dict[str, object], tmp_path: Path, chaos_table: ChaosTable
) -> None:
    with running(servers, "started-alone", tmp_path) as run:
        await run.until(in_a_rollout_of(0))
        supervisor = servers.supervisor()
        supervisor.suspend()
        at = time.time()
        try:
            for service in (TEMPORAL, POSTGRES, S3):
                servers.signal(service, signal.SIGKILL)
            for kind in ("control", "engine", "sandbox", "trainer"):
                run.worker(kind).kill()
            await asyncio.sleep(25.0)  # long enough for a worker that gives up to use up its restarts
        finally:
            supervisor.resume()
        events = await ended_as(undisturbed, run)
        chaos_table.add(row(events, "step 0 rolls out", "all servers, all workers", "SIGKILL, 25 s away", at))


@pytest.mark.long
async def test_run_starts_the_supervisor_of_its_servers_again(
    servers: OwnServices, undisturbed: dict[str, object], tmp_path: Path, chaos_table: ChaosTable
) -> None:
    with running(servers, "unsupervised", tmp_path) as run:
        await run.until(in_a_rollout_of(0))
        at = time.time()
        servers.supervisor().kill()  # and with it, by the kernel, all servers
        detection_s = await told(run, "the supervisor of the embedded services was gone", within_s=60)
        events = await ended_as(undisturbed, run)
        chaos_table.add(row(events, "step 0 rolls out", "supervisor", "SIGKILL", at, detection_s=detection_s))


async def test_supervisor_that_was_killed_is_started_again_with_its_servers(
    servers: OwnServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPWELL_HOME", str(servers.home))
    before, lines = servers.state.supervisor, list[str]()
    async with watched(servers.addresses, lines.append):
        servers.supervisor().kill()  # and with it, by the kernel, all servers
        deadline = time.monotonic() + 120
        while not any("answers again" in line for line in lines):
            assert time.monotonic() < deadline, lines
            await asyncio.sleep(0.2)
    assert any("the supervisor of the embedded services was gone" in line for line in lines)
    assert servers.state.supervisor != before
