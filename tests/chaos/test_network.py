"""A network that drops packets without a word, between a worker and one service: nobody hangs, nothing is lost."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.chaos.cluster import Cluster, cluster
from tests.chaos.own_services import ended_as, in_a_rollout_of, row
from tests.chaos.table import ChaosTable
from workers.services.settings import ServiceName

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

LOST_S = 30.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """The module's own hosts."""
    async with cluster(tmp_path_factory.mktemp("hosts")) as two:
        yield two


@pytest.mark.parametrize("service", ServiceName)
async def test_run_ends_as_undisturbed_after_a_service_was_lost_to_a_host(
    service: ServiceName,
    two_hosts: Cluster,
    undisturbed: dict[str, object],
    chaos_table: ChaosTable,
) -> None:
    run = two_hosts.run(f"lost-{service}")
    try:
        await run.until(in_a_rollout_of(0))
        at = time.time()
        two_hosts.second.lose(two_hosts.service_ip[service])
        try:
            await asyncio.sleep(LOST_S)
        finally:
            two_hosts.second.find(two_hosts.service_ip[service])
        events = await ended_as(undisturbed, run)
        assert run.stop_workers() == {"control": 0, "trainer": 0, "engine": 0, "sandbox": 0}, run.logs()
    finally:
        run.kill()
    chaos_table.add(
        row(events, "step 0 rolls out", f"line of engine and sandboxes to {service}", f"dropped {LOST_S:.0f} s", at)
    )
