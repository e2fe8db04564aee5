"""How rollouts find engines: by lease and version; what an engine was asked ends with its lease."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

import pytest

from activities import engine_pool
from activities.engine_pool import EnginePool
from db.database import Database
from db.engines import Engines, Lease
from stepwell.policy.engine_http.server import Listening, listen, make_app
from stepwell.policy.engine_http.service import EngineService
from stepwell.policy.protocol import EngineError, GenerateRequest
from tests.stack.scripted_engine import ScriptedEngine

REQUEST = GenerateRequest(
    token_ids=(3, 4, 5), max_tokens=4, temperature=1.0, top_p=1.0, seed=1, stop_token_ids=(), version=0
)
SECRET = "s" * 32


@dataclass
class Leased:
    """An engine that listens and holds a lease."""

    engine: ScriptedEngine
    service: EngineService
    lease: Lease


Lend = Callable[..., Awaitable[Leased]]


@pytest.fixture
def register(connections: Database) -> Engines:
    return Engines(connections)


@pytest.fixture
async def lend(register: Engines) -> AsyncIterator[Lend]:
    """(run, name, texts, its version, the version that its lease says)"""
    listening: list[Listening] = []

    async def start(run: str, name: str, *texts: str, version: int = 0, told: int | None = 0) -> Leased:
        engine = ScriptedEngine(*texts, version=version)
        service = EngineService(engine)
        listening.append(await listen(make_app(service, SECRET)))
        lease = await register.register(
            f"{run}-{name}", run, listening[-1].url, f"engine-{name}", secret=SECRET, ttl_s=50, version=told
        )
        return Leased(engine, service, lease)

    yield start
    for each in listening:
        await each.close()


@pytest.fixture
async def pool(register: Engines) -> AsyncIterator[EnginePool]:
    pool = EnginePool(register)
    yield pool
    await pool.close()


async def test_a_rollout_stays_with_one_engine(pool: EnginePool, lend: Lend, fresh) -> None:
    run = fresh()
    for name in ("a", "b", "c"):
        await lend(run, name, *["view"] * 4)
    asked = [(await pool.generate(run, affinity, REQUEST)).engine for affinity in (0, 1, 2, 1)]
    assert asked == [f"{run}-a", f"{run}-b", f"{run}-c", f"{run}-b"]


async def test_requests_in_flight_move_at_once_when_a_lease_is_gone(
    pool: EnginePool, lend: Lend, register: Engines, fresh
) -> None:
    run = fresh()
    silent, other = await lend(run, "a"), await lend(run, "b", *["view"] * 8)
    asking = [asyncio.create_task(pool.generate(run, 0, replace(REQUEST, seed=seed))) for seed in range(8)]
    await silent.engine.silent.wait()
    await register.release(silent.lease)
    began = time.monotonic()
    answers = await asyncio.wait_for(asyncio.gather(*asking), timeout=30)
    assert {answer.engine for answer in answers} == {f"{run}-b"}
    assert time.monotonic() - began < 15.0
    assert other.engine.texts == []
    await asyncio.wait_for(silent.service.wait_empty(), timeout=10)


async def test_a_request_waits_for_the_next_engine_where_there_is_no_other(
    pool: EnginePool, lend: Lend, register: Engines, fresh
) -> None:
    run = fresh()
    silent = await lend(run, "a")
    asking = asyncio.create_task(pool.generate(run, 0, REQUEST))
    await silent.engine.silent.wait()
    await register.release(silent.lease)
    await asyncio.sleep(2.0)
    assert not asking.done()
    await lend(run, "b", "view")
    assert (await asyncio.wait_for(asking, timeout=15)).engine == f"{run}-b"


async def test_a_request_is_given_up_where_no_engine_comes(
    pool: EnginePool, fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_pool, "AWAY_S", 1.0)
    run = fresh()
    with pytest.raises(EngineError, match=f"no engine of {run} has been alive for 1 s"):
        await asyncio.wait_for(pool.generate(run, 0, REQUEST), timeout=30)


async def test_an_engine_that_comes_back_is_asked_again(pool: EnginePool, lend: Lend, register: Engines, fresh) -> None:
    run = fresh()
    first = await lend(run, "a")
    asking = asyncio.create_task(pool.generate(run, 0, REQUEST))
    await first.engine.silent.wait()
    await register.release(first.lease)
    await asyncio.sleep(1.5)
    await lend(run, "a", "view")
    assert (await asyncio.wait_for(asking, timeout=15)).engine == f"{run}-a"


@pytest.mark.parametrize("told", [1, None, 0], ids=["says another", "says none", "says it wrongly"])
async def test_an_engine_with_another_version_gives_no_token(
    told: int | None, pool: EnginePool, lend: Lend, fresh
) -> None:
    run = fresh()
    await lend(run, "a", *["view"] * 4, version=1, told=told)
    await lend(run, "b", *["view"] * 4)
    answers = [await pool.generate(run, affinity, REQUEST) for affinity in range(4)]
    assert {answer.engine for answer in answers} == {f"{run}-b"}
    assert {answer.generation.version for answer in answers} == {0}


async def test_a_version_that_nobody_says_to_serve_is_asked_for_all_the_same(
    pool: EnginePool, lend: Lend, fresh
) -> None:
    run = fresh()
    await lend(run, "a", "view", version=2, told=1)
    assert (await pool.generate(run, 0, replace(REQUEST, version=2))).generation.version == 2


async def test_a_turn_without_any_engine_fails_after_its_patience(
    pool: EnginePool, fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_pool, "PATIENCE_S", 0.5)
    with pytest.raises(EngineError, match="no engine is alive"):
        await pool.generate(fresh(), 0, REQUEST)


async def test_a_rollout_that_is_given_up_gives_up_what_it_asked(pool: EnginePool, lend: Lend, fresh) -> None:
    run = fresh()
    silent = await lend(run, "a")
    asking = asyncio.create_task(pool.generate(run, 0, REQUEST))
    await silent.engine.silent.wait()
    asking.cancel()
    await asyncio.wait([asking])
    await asyncio.wait_for(silent.service.wait_empty(), timeout=10)
