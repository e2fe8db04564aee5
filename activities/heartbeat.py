"""Heartbeats while an activity works: its worker's death is noticed within the declared silence."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from temporalio import activity

from db.outages import waiting_for


@asynccontextmanager
async def beating() -> AsyncGenerator[None]:
    """Beats three times as often as the activity's heartbeat timeout asks for, and tells what the process waits for."""
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    task = asyncio.create_task(_beat(timeout.total_seconds() / 3))
    try:
        yield
    finally:
        task.cancel()


async def _beat(every_s: float) -> None:
    while True:  # most activities are over before the first beat is due
        await asyncio.sleep(every_s)
        activity.heartbeat(*waiting_for())
