"""A run on two hosts, of which the one with engine and sandboxes is cut off in the middle and joined again."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.chaos.cluster import cluster
from tests.chaos.own_services import ended_as, in_a_rollout_of, row
from tests.chaos.table import ChaosTable
from workers.engine_lease import LEASE_S
from workflows.contracts import BEAT

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

CUT_S = 25.0
"""Longer than an engine's lease lasts, and than an activity may be silent: both are given up meanwhile."""


async def test_run_ends_as_undisturbed_after_a_host_that_was_cut_off(
    undisturbed: dict[str, object], tmp_path: Path, chaos_table: ChaosTable
) -> None:
    assert max(LEASE_S, BEAT.total_seconds()) < CUT_S
    async with cluster(tmp_path) as two:
        run = two.run("two-hosts")
        try:
            await run.until(in_a_rollout_of(0))
            at = time.time()
            two.second.cut()
            await asyncio.sleep(CUT_S)
            two.second.join()
            events = await ended_as(undisturbed, run)
            assert run.stop_workers() == {"control": 0, "trainer": 0, "engine": 0, "sandbox": 0}, run.logs()
        finally:
            run.kill()
        chaos_table.add(row(events, "step 0 rolls out", "host of engine and sandboxes", f"cut off {CUT_S:.0f} s", at))
