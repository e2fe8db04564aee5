"""The clock of our processes and of Postgres jumps an hour ahead and back in the middle of a run."""

import dataclasses
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from db.database import Database
from db.engines import Engines
from db.errors import LeaseLost
from tests.chaos.jumping_clock import JumpingClock
from tests.chaos.outcome import at_s
from tests.chaos.own_services import OwnServices, ended_as, in_a_rollout_of, own_services, row, training
from tests.chaos.table import ChaosTable
from workers.services.plan import Launch
from workers.services.postgres import PostgresService

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

HOUR_S = 3600


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> JumpingClock:
    """The clock that jumps."""
    return JumpingClock(tmp_path_factory.mktemp("clock"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def servers(clock: JumpingClock, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OwnServices]:
    """Servers of which Postgres has that clock."""
    launch = PostgresService.launch

    def with_clock(service: PostgresService) -> Launch:
        usual = launch(service)
        return dataclasses.replace(usual, environment={**usual.environment, **clock.environment()})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresService, "launch", with_clock)
        async with own_services(tmp_path_factory.mktemp("services")) as servers:
            yield servers


async def test_lease_from_before_the_clock_was_set_back_holds_only_if_it_is_renewed(
    servers: OwnServices, clock: JumpingClock
) -> None:
    database = Database(servers.addresses.appender, pool_size=1)
    try:
        engines = Engines(database)
        clock.jump(HOUR_S)
        lease = await engines.register("e", "r", "http://127.0.0.1:1", "engine-e", secret="s", ttl_s=10.0)
        assert [engine.engine_id for engine in await engines.live("r")] == ["e"]
        clock.jump(0)
        assert await engines.live("r") == []
        await engines.renew(lease, ttl_s=10.0)
        assert [engine.engine_id for engine in await engines.live("r")] == ["e"]
        clock.jump(HOUR_S)
        with pytest.raises(LeaseLost):
            await engines.renew(lease, ttl_s=10.0)
    finally:
        clock.jump(0)
        await database.close()


async def test_run_ends_as_undisturbed_when_the_clock_jumps_an_hour_ahead_and_back(
    servers: OwnServices,
    clock: JumpingClock,
    undisturbed: dict[str, object],
    tmp_path: Path,
    chaos_table: ChaosTable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in clock.environment().items():
        monkeypatch.setenv(name, value)
    run = servers.run("clock", tmp_path)
    try:
        await run.until(in_a_rollout_of(0))
        at = time.time()
        clock.jump(HOUR_S)
        await run.until(training(0))  # S3 takes no signature from the future: the new version waits for the true time
        clock.jump(0)
        events = await ended_as(undisturbed, run)
    finally:
        run.kill()
        clock.jump(0)
    ahead = [each for each in events if at_s(each) > at + HOUR_S / 2]
    assert ahead, "the database's clock did not jump"
    assert len(ahead) < len(events)
    chaos_table.add(row(events, "step 0 rolls out", "our processes and Postgres", "clock an hour ahead, and back", at))
