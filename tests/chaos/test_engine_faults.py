"""Engines killed and stopped, at rest and in a weight update: out of traffic, replaced, back when they have attested.

The run ends with the same weights, tokens and scores, and no token is of a version that its engine had not attested.
"""

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from db.database import Database
from db.engines import Engines
from stepwell.events import StepCompleted, VersionAttested
from tests.chaos.engines_of import (
    PATIENCE_S,
    engines_of,
    events_of_engines,
    turns_of_engine,
    unattested_turns,
    until_live,
)
from tests.chaos.kill_points import Held, KillPoints, kill_points
from tests.chaos.own_worker import own_worker
from tests.chaos.test_kills import in_a_rollout_of
from tests.stack.tiny_run import Start, TinyRun
from workers.engine_lease import LEASE_S
from workers.services.home import Home
from workers.services.postgres import DATABASE, SUPERUSER
from workers.services.settings import load_settings

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]  # tests/stack/test_engine_pool.py has the short form

OUT_WITHIN_S = 2 * LEASE_S
"""The lease, and as much again for a machine that others use too."""


@pytest.fixture
def register(connections: Database) -> Engines:
    return Engines(connections)


@pytest.fixture
def superuser(services_home: Path, database: object) -> str:
    settings = load_settings(Home(services_home))
    assert settings is not None
    password = settings.superuser_password
    return f"postgresql://{SUPERUSER}:{password}@127.0.0.1:{settings.ports.postgres}/{DATABASE}"


async def ends_well(run: TinyRun, undisturbed: dict[str, object]) -> None:
    """The rest of a run that was disturbed."""
    assert await run.finish() == 0, run.output
    assert await run.outcome() == undisturbed
    assert await unattested_turns(run) == []
    verified = run.verify()
    assert verified.returncode == 0, verified.stdout
    assert run.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["SIGKILL", "SIGSTOP"])
async def test_rollouts_of_an_engine_that_is_gone_go_on_with_another(
    number: signal.Signals,
    undisturbed: dict[str, object],
    start_run: Start,
    register: Engines,
    record_property: Callable[[str, object], None],
) -> None:
    run = start_run(f"two-{number.name.lower()}", "engines=2")
    await run.until(in_a_rollout_of(0))
    live = await engines_of(run, register, 2)
    turns = {engine.address.engine_id: len(await turns_of_engine(run, engine.address.engine_id)) for engine in live}
    victim, other = sorted(live, key=lambda engine: -turns[engine.address.engine_id])
    victim.process.send_signal(number)
    began = time.monotonic()
    await until_live(run, register, lambda live: victim.address.engine_id not in {each.engine_id for each in live})
    out_s = time.monotonic() - began
    record_property("out_of_traffic_s", out_s)
    assert out_s < OUT_WITHIN_S
    await ends_well(run, undisturbed)
    assert len(await turns_of_engine(run, other.address.engine_id)) > turns[other.address.engine_id]


async def held(points: KillPoints) -> Held:
    """Who waits at a kill point."""
    deadline = time.monotonic() + PATIENCE_S
    while (waiting := await points.held()) is None:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    return waiting


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["SIGKILL", "SIGSTOP"])
async def test_engine_struck_in_a_weight_update_is_replaced_and_attests_before_it_gets_traffic(
    number: signal.Signals,
    undisturbed: dict[str, object],
    start_run: Start,
    register: Engines,
    superuser: str,
    record_property: Callable[[str, object], None],
) -> None:
    # Held between the load of version 1 and its attestation: the middle of the update. Version 0 is attested twice: as
    # the engine starts, and as the run asks for it.
    name = f"update-{number.name.lower()}"  # no pattern for both: the point counts what earlier runs of it appended
    async with kill_points(superuser, [(f"engine/{name}/%", "VersionAttested", 2)]) as points:
        run = start_run(name)
        (victim,) = await engines_of(run, register, 1)
        waiting = await held(points)
        assert waiting.writer == victim.process.pid
        victim.process.send_signal(number)
        began = time.monotonic()
        await points.roll_back(waiting)
        await until_live(run, register, lambda live: victim.address.engine_id not in {each.engine_id for each in live})
        record_property("out_of_traffic_s", time.monotonic() - began)
        await until_live(run, register, lambda live: any(each.version in (1, 2) for each in live))
        record_property("back_in_traffic_s", time.monotonic() - began)
        await ends_well(run, undisturbed)


async def test_engine_that_comes_back_attests_what_is_served_by_then_before_it_takes_traffic(
    start_run: Start, services_home: Path, register: Engines, tmp_path: Path
) -> None:
    run = start_run("late", "run.max_steps=100", "validation.every=100", "validation.first=100")
    (supervised,) = await engines_of(run, register, 1)
    with own_worker(services_home, tmp_path / "late.log", "engine", "--run", run.name) as mine:
        live = await engines_of(run, register, 2)
        late = next(engine for engine in live if engine.process.pid == mine.pid).address.engine_id
        mine.send_signal(signal.SIGSTOP)
        gone = await until_live(run, register, lambda live: late not in {each.engine_id for each in live})
        held_before = (await attested_by(run, late))[-1]
        assert [each.engine_id for each in gone] == [supervised.address.engine_id]
        await run.until(lambda events: sum(isinstance(each.event, StepCompleted) for each in events) > held_before + 2)
        before = len(await turns_of_engine(run, late))
        mine.send_signal(signal.SIGCONT)
        back = await until_live(run, register, lambda live: late in {each.engine_id for each in live})
        version = next(each.version for each in back if each.engine_id == late)
        assert version is not None
        assert version > held_before, "it attested anew what the run serves before it was listed again"
        assert version in await attested_by(run, late)
        await run.until(lambda events: sum(isinstance(each.event, StepCompleted) for each in events) > version + 2)
        assert await run.interrupt() == 1
        assert await unattested_turns(run) == []
        since = (await turns_of_engine(run, late))[before:]
        assert all(each.event.version >= version for each in since)
    assert run.leftovers() == []
    assert not psutil.pid_exists(mine.pid)


async def attested_by(run: TinyRun, engine: str) -> list[int]:
    """Versions that an engine attested, in order."""
    return [
        each.event.version
        for each in await events_of_engines(run)
        if isinstance(each.event, VersionAttested) and each.stream.endswith(f"/{engine}")
    ]
