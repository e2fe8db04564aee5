"""Whether a worker lives on this machine, for the health check of its container.

    python -m workers.health KIND       exit 0: a worker of this kind on this host holds its lease

The lease is renewed by the worker's own event loop, so one that hangs is not healthy.
"""

import asyncio
import socket
import sys

from db.database import Database
from db.workers import WorkerLeases
from workers.services.addresses import Addresses, resolve


async def is_healthy(kind: str, addresses: Addresses, host: str) -> bool:
    """Whether a worker of the kind on the host holds its lease.

    Raises:
        DatabaseUnavailable: no connection.
    """
    database = Database(addresses.auditor, pool_size=1)
    try:
        return any(worker.host == host for worker in await WorkerLeases(database).live([kind]))
    finally:
        await database.close()


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(is_healthy(sys.argv[1], resolve(), socket.gethostname())) else 1)
