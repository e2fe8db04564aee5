"""Servers of a test's own, to be killed, stopped and starved, and what becomes of a run meanwhile."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from db.database import Database
from db.ledger import Ledger
from db.migrate import upgrade
from db.recorded import Recorded
from stepwell.events import RolloutEnded, StepAdmitted, StepDispatched, StepTrained, TurnRecorded
from stepwell.events.base import Event
from tests.chaos.outcome import at_s, repeated_steps, turns_of
from tests.chaos.table import SAME, Row
from tests.stack.tiny_run import TinyRun
from workers.services.addresses import Addresses
from workers.services.home import Home
from workers.services.lifecycle import held
from workers.services.plan import SupervisorState, read_state
from workers.services.settings import ServiceName

Happened = Callable[[list[Recorded]], bool]
CHAPTER = "Services, network, clock, disk"
PATIENCE_S = 60.0


@dataclass
class OwnServices:
    """Three servers under a supervisor of their own."""

    home: Path
    addresses: Addresses
    ledger: Ledger
    """Waits for a database that is away."""

    @property
    def state(self) -> SupervisorState:
        """What runs."""
        state = read_state(Home(self.home).state)
        assert state is not None
        return state

    def supervisor(self) -> psutil.Process:
        """The supervisor."""
        return psutil.Process(self.state.supervisor.pid)

    def processes(self, service: ServiceName) -> list[psutil.Process]:
        """A server and its children."""
        process = self.state.services[service].process
        assert process is not None, f"{service} is between two lives"
        server = psutil.Process(process.pid)
        return [server, *server.children(recursive=True)]

    def signal(self, service: ServiceName, number: signal.Signals) -> None:
        """Sends a signal to a server, and to all of its children where it stops or goes on."""
        whole = number in (signal.SIGSTOP, signal.SIGCONT)
        for process in self.processes(service)[: None if whole else 1]:
            process.send_signal(number)

    def run(self, name: str, folder: Path, *settings: str) -> TinyRun:
        """A run on them that is under way."""
        run = TinyRun(name, self.home, self.ledger, folder, settings)
        run.start()
        return run


@asynccontextmanager
async def own_services(home: Path) -> AsyncIterator[OwnServices]:
    """Servers in a home of their own, migrated; gone after the block."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("STEPWELL_")]:
            patch.delenv(name)
        with held(home) as addresses:
            upgrade(addresses.migrator)
            database = Database(addresses.auditor, pool_size=2, wait_s=PATIENCE_S)
            try:
                yield OwnServices(home, addresses, Ledger(database))
            finally:
                await database.close()


def in_a_rollout_of(step: int) -> Happened:
    """A turn of a rollout of the step is recorded, and some rollout of it has not ended."""

    def happened(events: Iterable[Recorded]) -> bool:
        of_step = [each.event for each in events if f"/{step}/" in each.stream and each.stream.startswith("rollout")]
        turns = sum(isinstance(event, TurnRecorded) for event in of_step)
        ended = sum(isinstance(event, RolloutEnded) for event in of_step)
        return turns > 0 and ended < 8

    return happened


def training(step: int) -> Happened:
    """The step's batch is fixed, and its version not made."""

    return lambda events: (StepAdmitted, step) in (kinds := _kinds(events)) and (StepTrained, step) not in kinds


@asynccontextmanager
async def about_to_train(run: TinyRun, step: int) -> AsyncIterator[None]:
    """The step's batch is fixed, and its version not made: for the block the trainer is stopped there, so that the
    moment cannot pass before the test sees it."""
    await run.until(lambda events: (StepDispatched, step) in _kinds(events))
    trainer = run.worker("trainer")
    trainer.suspend()
    try:
        await run.until(lambda events: (StepAdmitted, step) in _kinds(events))
        assert (StepTrained, step) not in _kinds(await run.events())
        yield
    finally:
        trainer.resume()


def _kinds(events: Iterable[Recorded]) -> set[tuple[type[Event], int | None]]:
    return {(type(each.event), getattr(each.event, "step", None)) for each in events}


async def told(run: TinyRun, line: str, *, within_s: float) -> float:
    """Waits until the command has printed a line that holds these words; seconds that it took."""
    began = time.monotonic()
    while line not in run.output:
        assert run.process is not None
        assert run.process.poll() is None, run.output
        assert time.monotonic() - began < within_s, f"no {line!r} within {within_s:.0f} s in:\n{run.output}"
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def ended_as(undisturbed: dict[str, object], run: TinyRun) -> list[Recorded]:
    """Waits for the run's end; it did the same as undisturbed, and its ledger verifies. Its events."""
    assert await run.finish() == 0, run.output
    assert await run.outcome() == undisturbed
    verified = run.verify()
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert run.leftovers() == []
    return await run.events()


def row(
    events: list[Recorded], fault: str, process: str, how: str, at: float, *, detection_s: float | None = None
) -> Row:
    """The table's row of a fault that struck at `at` (seconds since the epoch) and after which the run ended as
    undisturbed."""
    later = [at_s(each) - at for each in events if at_s(each) > at]
    turns = turns_of(events)
    return Row(
        chapter=CHAPTER,
        fault=fault,
        process=process,
        signal=how,
        outcome=SAME,
        detection_s=detection_s,
        recovery_s=min(later, default=None),
        turns_lost=turns.lost,
        turns_repeated=turns.repeated,
        steps_repeated=repeated_steps(events),
    )
