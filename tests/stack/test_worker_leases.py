"""Workers are live for as long as their event loops say so."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from db.database import Database
from db.errors import LeaseLost
from db.workers import LiveWorker, WorkerAddress, WorkerLeases
from workers import presence
from workers.presence import present
from workers.services.addresses import Addresses


@pytest.fixture
def leases(connections: Database) -> WorkerLeases:
    return WorkerLeases(connections)


def worker(worker_id: str, run: str | None = None, kind: str = "trainer") -> WorkerAddress:
    return WorkerAddress(worker_id, kind, run, kind, "somewhere", 4711)


async def listed(leases: WorkerLeases, run: str) -> list[str]:
    """Ids of the live workers that only this run's test registered."""
    return [live.worker_id for live in await leases.live(run=run) if live.worker_id.startswith(run)]


async def test_a_worker_is_listed_by_kind_and_by_the_runs_that_it_can_serve(leases: WorkerLeases, fresh) -> None:
    run, other = fresh(), fresh()
    await leases.register(worker(f"{run}-any"), ttl_s=60)
    await leases.register(worker(f"{run}-own", run, "engine"), ttl_s=60)
    await leases.register(worker(f"{run}-other", other, "engine"), ttl_s=60)
    assert sorted(await listed(leases, run)) == [f"{run}-any", f"{run}-own"]
    engines = await leases.live(["engine"], run=run)
    assert [(live.worker_id, live.kind, live.run) for live in engines] == [(f"{run}-own", "engine", run)]
    assert {f"{run}-any", f"{run}-own", f"{run}-other"} <= {live.worker_id for live in await leases.live()}


async def test_a_lease_runs_out_and_is_lost_to_who_registers_again(leases: WorkerLeases, fresh) -> None:
    run = fresh()
    old = await leases.register(worker(run), ttl_s=0.2)
    await leases.renew(old, ttl_s=0.2)
    await asyncio.sleep(0.3)
    assert await listed(leases, run) == []
    with pytest.raises(LeaseLost):
        await leases.renew(old, ttl_s=60)
    new = await leases.register(worker(run), ttl_s=60)
    await leases.release(old)
    assert await listed(leases, run) == [run]
    await leases.release(new)
    assert await listed(leases, run) == []


async def test_a_loop_that_was_blocked_is_listed_again_when_it_turns(
    connections: Database, leases: WorkerLeases, fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "LEASE_S", 0.4)
    monkeypatch.setattr(presence, "RENEW_S", 0.1)
    run = fresh()
    async with present(connections, worker(run)):
        await asyncio.sleep(1.0)
        assert await listed(leases, run) == [run]
        time.sleep(0.6)  # noqa: ASYNC251  # the hang
        assert await listed(leases, run) == []
        for _ in range(50):
            if await listed(leases, run):
                break
            await asyncio.sleep(0.1)
        assert await listed(leases, run) == [run]
    assert await listed(leases, run) == []


@contextmanager
def started(home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A real control worker."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "worker", "control", "--parent", str(os.getpid())],
        env={**os.environ, "STEPWELL_HOME": str(home)},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def of_process(leases: WorkerLeases, pid: int, *, there: bool, within_s: float) -> list[LiveWorker]:
    """Looks until the process is listed, or is not; what was listed last."""
    until = time.monotonic() + within_s
    while True:
        live = [each for each in await leases.live(["control"]) if each.pid == pid]
        if bool(live) == there or time.monotonic() > until:
            return live
        await asyncio.sleep(0.2)


async def test_a_stopped_process_leaves_the_list_and_status_says_who_is_alive(
    services: Addresses, services_home: Path, leases: WorkerLeases
) -> None:
    with started(services_home) as process:
        (live,) = await of_process(leases, process.pid, there=True, within_s=60)
        assert (live.kind, live.run, live.queue) == ("control", None, "control")
        status = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "cli.main", "status", "--json"],
            env={**os.environ, "STEPWELL_HOME": str(services_home)},
            capture_output=True,
            check=True,
        )
        told = {each["worker_id"]: each for each in json.loads(status.stdout)["workers"]}
        assert told[live.worker_id]["pid"] == process.pid
        process.send_signal(signal.SIGSTOP)
        assert await of_process(leases, process.pid, there=False, within_s=30) == []
        process.send_signal(signal.SIGCONT)
        (again,) = await of_process(leases, process.pid, there=True, within_s=30)
        assert again.worker_id == live.worker_id
        assert again.registered_at > live.registered_at
        process.terminate()
        assert await of_process(leases, process.pid, there=False, within_s=8) == [], "released, not run out"
