"""Engines are live for as long as they say so."""

import asyncio

import pytest

from db.database import Database
from db.engines import EngineAddress, Engines
from db.errors import LeaseLost


@pytest.fixture
def engines(connections: Database) -> Engines:
    return Engines(connections)


async def test_a_registered_engine_is_live_in_its_run_alone(engines: Engines, fresh) -> None:
    run, other = fresh(), fresh()
    await engines.register(f"{run}-a", run, "http://a", "engine-a", secret="s", ttl_s=60)
    await engines.register(f"{run}-b", run, "http://b", "engine-b", secret="s", ttl_s=60)
    assert await engines.live(run) == [
        EngineAddress(f"{run}-a", run, "http://a", "s", "engine-a"),
        EngineAddress(f"{run}-b", run, "http://b", "s", "engine-b"),
    ]
    assert await engines.live(other) == []


async def test_a_lease_that_is_not_renewed_runs_out(engines: Engines, fresh) -> None:
    run = fresh()
    lease = await engines.register(run, run, "http://a", "engine-a", secret="s", ttl_s=0.2)
    await engines.renew(lease, ttl_s=0.2)
    await asyncio.sleep(0.25)
    assert await engines.live(run) == []
    with pytest.raises(LeaseLost):
        await engines.renew(lease, ttl_s=60)


async def test_a_renewed_lease_outlives_its_first_term(engines: Engines, fresh) -> None:
    run = fresh()
    lease = await engines.register(run, run, "http://a", "engine-a", secret="s", ttl_s=5)
    await engines.renew(lease, ttl_s=60)
    assert len(await engines.live(run)) == 1
    await engines.renew(lease, ttl_s=0.01)
    await asyncio.sleep(0.05)
    assert await engines.live(run) == []


async def test_a_released_engine_is_not_live(engines: Engines, fresh) -> None:
    run = fresh()
    lease = await engines.register(run, run, "http://a", "engine-a", secret="s", ttl_s=60)
    await engines.release(lease)
    assert await engines.live(run) == []
    await engines.release(lease)


async def test_who_registers_under_an_id_takes_it_over(engines: Engines, fresh) -> None:
    run = fresh()
    old = await engines.register(run, run, "http://old", "engine-a", secret="s", ttl_s=60)
    new = await engines.register(run, run, "http://new", "engine-a", secret="s", ttl_s=60)
    with pytest.raises(LeaseLost):
        await engines.renew(old, ttl_s=60)
    await engines.release(old)
    await engines.renew(new, ttl_s=60)
    assert [engine.url for engine in await engines.live(run)] == ["http://new"]
