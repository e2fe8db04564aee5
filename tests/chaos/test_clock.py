"""The clock of our processes and of Postgres jumps an hour ahead and back in the middle of a run."""

import dataclasses
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.faketime import JumpingClock, forget_shared_memory, shared_memory
from tests.chaos.outcome import at_s
from tests.chaos.own_services import OwnServices, ended_as, in_a_rollout_of, own_services, row, training
from tests.chaos.table import ChaosTable
from workers.services.plan import Launch
from workers.services.postgres import PostgresService

pytestmark = pytest.mark.timeout(600)

HOUR_S = 3600


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JumpingClock]:
    """The clock that jumps."""
    before = shared_memory()
    clock = JumpingClock(tmp_path_factory.mktemp("clock") / "offset")
    clock.jump(0)
    yield clock
    forget_shared_memory(before)


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
        await run.until(training(1))
        clock.jump(0)
        events = await ended_as(undisturbed, run)
    finally:
        run.kill()
        clock.jump(0)
    ahead = [each for each in events if at_s(each) > at + HOUR_S / 2]
    assert ahead, "the database's clock did not jump"
    assert len(ahead) < len(events)
    chaos_table.add(row(events, "steps 0 and 1", "our processes and Postgres", "clock an hour ahead, and back", at))
