"""A run's engines: which process is which, which of them take traffic, and what each had attested when it spoke."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from db.engines import EngineAddress, Engines
from db.recorded import Recorded
from stepwell.events import EngineStarted, TurnRecorded, VersionAttested
from stepwell.events.streams import engine_stream
from tests.stack.tiny_run import TinyRun

PATIENCE_S = 180.0


@dataclass(frozen=True)
class RunningEngine:
    """An engine that takes traffic."""

    address: EngineAddress
    process: psutil.Process


async def events_of_engines(run: TinyRun) -> list[Recorded]:
    """What the run's engines recorded."""
    return await run.ledger.read_prefix(engine_stream(run.name, ""))


async def engines_of(run: TinyRun, register: Engines, count: int) -> list[RunningEngine]:
    """The engines that take traffic, once there are so many."""
    live = await until_live(run, register, lambda live: len(live) == count)
    pids = {
        each.event.engine: int(each.event.worker.rpartition("/")[2])
        for each in await events_of_engines(run)
        if isinstance(each.event, EngineStarted)
    }
    return [RunningEngine(address, psutil.Process(pids[address.engine_id])) for address in live]


async def until_live(
    run: TinyRun, register: Engines, happened: Callable[[list[EngineAddress]], bool]
) -> list[EngineAddress]:
    """The engines that hold a lease, once they are so that `happened`."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        live = await register.live(run.name)
        if happened(live):
            return live
        assert time.monotonic() < deadline, f"{live}\n{run.output}"
        await asyncio.sleep(0.05)


async def turns_of_engine(run: TinyRun, engine: str) -> list[Recorded]:
    """Turns that an engine generated."""
    return [each for each in await run.events() if isinstance(each.event, TurnRecorded) and each.event.engine == engine]


async def unattested_turns(run: TinyRun) -> list[str]:
    """Turns with tokens of a version that their engine had not attested by then; there should be none."""
    attested = {
        (each.stream.rpartition("/")[2], each.event.version): each.envelope.time
        for each in reversed(await events_of_engines(run))  # the first attestation of each version stands
        if isinstance(each.event, VersionAttested)
    }
    return [
        f"{each.stream}#{each.seq}: version {each.event.version} of {each.event.engine}"
        for each in await run.events()
        if isinstance(each.event, TurnRecorded)
        and attested.get((each.event.engine, each.event.version), "~") > each.envelope.time
    ]
