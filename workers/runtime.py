"""What every worker process opens: stores, Temporal client, and a Temporal worker that ends cleanly."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import PollerBehaviorSimpleMaximum, UnsandboxedWorkflowRunner, Worker

from activities.stores import Stores
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.objects import ObjectStore
from stepwell.sandbox.folders import make_owned_folder, remove_tree, sweep
from workers.declarations import check_activities
from workers.lifetime import on_stop_signals
from workers.services.addresses import Addresses
from workers.services.home import Home

WorkerKind = Literal["control", "trainer", "engine", "sandbox"]

GRACE = timedelta(seconds=5)
"""How long a stopping worker lets its activities go on; they are taken up elsewhere after it."""


@dataclass
class Runtime:
    """Open connections of one worker process."""

    addresses: Addresses
    database: Database
    stores: Stores
    client: Client
    cache: Path
    """This process's own folder, for what can be fetched again; gone when it ends."""
    models: Path
    """Folder that all processes share, for models unpacked once."""
    name: str
    """`<host>/<pid>`."""


@asynccontextmanager
async def runtime(kind: WorkerKind, addresses: Addresses, *, connections: int = 4) -> AsyncGenerator[Runtime]:
    """Opens the stores with the workers' role, and a client whose identity names this process."""
    name = f"{socket.gethostname()}/{os.getpid()}"
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("temporalio.activity").setLevel(logging.WARNING)
    home = Home.of(None).root
    caches = home / "cache" / kind
    await asyncio.to_thread(sweep, caches)  # what processes that were killed have left
    cache = make_owned_folder(caches)
    database = Database(addresses.appender, pool_size=connections)
    objects = ObjectStore(addresses.bucket)
    try:
        client = await connect(addresses, identity=f"{kind}:{name}")
        stores = Stores(Ledger(database), BlobStore(database, objects), actor=f"{kind}:{name}")
        yield Runtime(addresses, database, stores, client, cache, home / "models", name)
    finally:
        await asyncio.to_thread(remove_tree, cache)
        await objects.close()
        await database.close()


async def connect(addresses: Addresses, *, identity: str) -> Client:
    """A Temporal client that carries our models."""
    return await Client.connect(
        addresses.temporal,
        namespace=addresses.namespace,
        data_converter=pydantic_data_converter,
        identity=identity,
    )


async def serve(
    client: Client,
    queue: str,
    activities: Sequence[Callable[..., Any]],
    *,
    workflows: Sequence[type] = (),
    concurrency: int = 100,
    pollers: int = 4,
) -> None:
    """Polls a queue until SIGTERM or SIGINT, then ends within the grace."""
    check_activities(activities)
    stop = asyncio.Event()
    on_stop_signals(stop.set)
    worker = Worker(
        client,
        task_queue=queue,
        activities=activities,
        workflows=workflows,
        # Imports and purity of workflows are held by tests; the sandbox would reload pydantic for each run.
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=concurrency,
        activity_task_poller_behavior=PollerBehaviorSimpleMaximum(pollers),
        workflow_task_poller_behavior=PollerBehaviorSimpleMaximum(max(2, pollers)),
        graceful_shutdown_timeout=GRACE,
    )
    async with worker:
        await stop.wait()
