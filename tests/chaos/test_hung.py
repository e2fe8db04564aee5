"""A process that hangs is found as surely as a dead one; one that comes back changes nothing, and works on."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from db.database import Database
from db.recorded import Recorded
from db.workers import WorkerLeases
from stepwell.events import AttemptOpened, RolloutEnded, RolloutGraded, TurnRecorded
from tests.chaos.own_worker import own_worker
from tests.stack.tiny_run import Start
from workers import launch
from workers.launch import WorkerSet, WorkerSpec
from workers.services.addresses import Addresses

pytestmark = pytest.mark.timeout(900)


def of_actor(events: list[Recorded], pid: int) -> list[Recorded]:
    """Events of rollouts that a process appended."""
    return [each for each in events if each.envelope.actor.endswith(f"/{pid}") and each.stream.startswith("rollout/")]


def unfinished_of(events: list[Recorded], pid: int) -> list[str]:
    """Rollouts that a process has open, with a recorded turn."""
    last = {each.stream: each for each in events if each.stream.startswith("rollout/")}
    with_turns = {each.stream for each in events if isinstance(each.event, TurnRecorded)}
    return [
        stream
        for stream, each in last.items()
        if each.envelope.actor.endswith(f"/{pid}")
        and stream in with_turns
        and isinstance(each.event, AttemptOpened | TurnRecorded)
    ]


def has_unfinished(pid: int) -> Callable[[list[Recorded]], bool]:
    """The process is in the middle of a rollout."""
    return lambda events: bool(unfinished_of(events, pid))


def of_stream(events: list[Recorded], stream: str) -> list[Recorded]:
    """Events of one stream."""
    return [each for each in events if each.stream == stream]


def attempted_by(events: list[Recorded], pid: int) -> list[Recorded]:
    """What a process appended as it played; a grading is work of its own."""
    return [each for each in of_actor(events, pid) if not isinstance(each.event, RolloutGraded)]


def ended(streams: list[str]) -> Callable[[list[Recorded]], bool]:
    """All of these rollouts have ended."""

    def happened(events: list[Recorded]) -> bool:
        over = {each.stream for each in events if isinstance(each.event, RolloutEnded)}
        return set(streams) <= over

    return happened


async def test_stalled_attempt_appends_nothing_when_it_comes_back_and_its_worker_works_on(
    undisturbed: dict[str, object],
    start_run: Start,
    services: Addresses,
    services_home: Path,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    with own_worker(services_home, tmp_path / "stalled.log", "sandbox", "--concurrency", "4") as mine:
        run = start_run(
            "stalled",
            "sandbox.concurrency=1",
        )
        await run.until(has_unfinished(mine.pid))
        mine.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        stalled = unfinished_of(await run.events(), mine.pid)
        await run.until(ended(stalled))
        record_property("taken_up_and_ended_s", time.monotonic() - began)
        before = await run.events()
        mine.send_signal(signal.SIGCONT)
        await run.until(lambda events: len(of_actor(events, mine.pid)) > len(of_actor(before, mine.pid)))
        assert await run.finish() == 0, run.output
        after = await run.events()
    for stream in stalled:
        stood, stands = of_stream(before, stream), of_stream(after, stream)
        assert stands[: len(stood)] == stood
        assert attempted_by(stands, mine.pid) == attempted_by(stood, mine.pid), "it was fenced"
    assert await run.outcome() == undisturbed
    verified = run.verify()
    assert verified.returncode == 0, verified.stdout
    assert run.leftovers() == []


async def until_alive(connections: Database, pids: Callable[[], set[int]]) -> int:
    """Waits for a control worker among some processes to be listed as alive; which one."""
    leases, deadline = WorkerLeases(connections), time.monotonic() + 120.0
    while True:
        found = pids() & {live.pid for live in await leases.live(["control"])}
        if found:
            return found.pop()
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


async def test_worker_that_was_stopped_is_called_hung_killed_and_started_again(
    services: Addresses,
    services_home: Path,
    connections: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))
    monkeypatch.setattr(launch, "HUNG_S", 8.0)
    told: list[str] = []
    workers = WorkerSet(tmp_path, told.append)
    workers.start([WorkerSpec("control", ("control",))])
    watching = asyncio.create_task(workers.watch())
    try:
        first = await until_alive(connections, lambda: set(workers.pids().values()))
        os.kill(first, signal.SIGSTOP)
        second = await until_alive(connections, lambda: set(workers.pids().values()) - {first})
        assert not psutil.pid_exists(first)
        assert psutil.Process(second).status() != psutil.STATUS_STOPPED
    finally:
        watching.cancel()
        await workers.stop()
    hung, ended = (message for message in told if f"(pid {first})" in message)
    assert "is hung" in hung
    assert "ended hung; starting it again" in ended
    assert not psutil.pid_exists(second)
