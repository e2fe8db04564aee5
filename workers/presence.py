"""A worker process says that it is alive: its event loop renews a lease, which a process that hangs lets run out."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from db.database import Database
from db.errors import DatabaseUnavailable, DiskFull, LeaseLost
from db.workers import WorkerAddress, WorkerLease, WorkerLeases

LEASE_S = 10.0
"""A process that does not renew counts as dead after this."""
RENEW_S = LEASE_S / 4
AWAY = (DatabaseUnavailable, DiskFull, TimeoutError)
"""What passes by itself."""


@asynccontextmanager
async def present(database: Database, worker: WorkerAddress) -> AsyncGenerator[None]:
    """The worker is listed as live for the block, as long as this event loop turns and the database answers.

    Args:
        database: connections that nothing else keeps busy.
        worker: who it is.
    """
    presence = _Presence(WorkerLeases(database), worker)
    await presence.renew()
    try:
        async with asyncio.TaskGroup() as beside:  # a worker that can no longer say that it is alive ends
            keeping = beside.create_task(presence.keep())
            try:
                yield
            finally:
                keeping.cancel()
    finally:
        await presence.release()


class _Presence:
    def __init__(self, leases: WorkerLeases, worker: WorkerAddress) -> None:
        self._leases = leases
        self._worker = worker
        self._lease: WorkerLease | None = None

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            await self.renew()

    async def renew(self) -> None:
        """Renews the lease, or takes a new one; while the database is away it runs out by itself."""
        try:
            async with asyncio.timeout(LEASE_S):
                if self._lease is None or not await self._renewed(self._lease):
                    self._lease = await self._leases.register(self._worker, ttl_s=LEASE_S)
        except AWAY as error:
            logging.warning("worker %s could not say that it is alive: %s", self._worker.worker_id, error)

    async def _renewed(self, lease: WorkerLease) -> bool:
        try:
            await self._leases.renew(lease, ttl_s=LEASE_S)
        except LeaseLost as lost:
            logging.warning("%s", lost)
            return False
        return True

    async def release(self) -> None:
        """Gives the lease back; one that cannot be given back runs out by itself."""
        if self._lease is None:
            return
        try:
            async with asyncio.timeout(RENEW_S):
                await self._leases.release(self._lease)
        except AWAY as error:
            logging.warning("worker %s could not say that it ends: %s", self._worker.worker_id, error)
