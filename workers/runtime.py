"""What every worker process opens: stores, Temporal client, and a Temporal worker that ends cleanly."""

import asyncio
import logging
import math
import os
import socket
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import KeepAliveConfig, RetryConfig, RPCError
from temporalio.worker import (
    PollerBehaviorSimpleMaximum,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerDeploymentConfig,
)

from activities.stores import Stores
from db.blobs import BlobStore
from db.database import Database, driver_url, shown
from db.ledger import Ledger
from db.migrate import check
from db.objects import ObjectStore
from db.outages import patiently
from db.workers import WorkerAddress
from stepwell.sandbox.folders import make_owned_folder, remove_tree, sweep
from workers.beating import BeatingInterceptor
from workers.build import build_id
from workers.declarations import check_activities
from workers.lifetime import on_stop_signals
from workers.presence import present
from workers.services.addresses import Addresses
from workers.services.home import Home

WorkerKind = Literal["control", "trainer", "engine", "sandbox", "trial"]

GRACE = timedelta(seconds=5)
"""How long a stopping worker lets its activities go on; they are taken up elsewhere after it."""
CONNECT_S = 10.0
LOOK_AGAIN_S = 0.5
HEARTBEATS_APART = timedelta(seconds=3)
"""The client holds heartbeats back for 0.8 of their timeout otherwise: the least delay would count as a death."""
STICKY = timedelta(seconds=3)
"""How long a workflow's next task waits for the worker that remembers it; another one folds its history instead."""
KEEP_ALIVE = KeepAliveConfig(interval_millis=12_000, timeout_millis=10_000)
"""A silent network is noticed within 22 s. The server takes more than one ping in 10 s for an attack."""
RETRY = RetryConfig(max_elapsed_time_millis=300_000, max_retries=0)
"""Calls of ours. The SDK's own, with the results of activities, are made for 10 s whatever it is told; a result that
could not be told in this time is asked for again, and answered from the ledger."""


@dataclass
class Runtime:
    """Open connections of one worker process."""

    addresses: Addresses
    database: Database
    leasing: Database
    """A connection for leases alone: they do not wait behind the work."""
    stores: Stores
    client: Client
    cache: Path
    """This process's own folder, for what can be fetched again; gone when it ends."""
    models: Path
    """Folder that all processes share, for models unpacked once."""
    name: str
    """`<host>/<pid>`."""


@asynccontextmanager
async def runtime(
    kind: WorkerKind, addresses: Addresses, *, connections: int = 4, queue: str | None = None, run: str | None = None
) -> AsyncGenerator[Runtime]:
    """Opens the stores with the workers' role, and a client whose identity names this process.

    Args:
        kind: what it is, and so what it may append.
        addresses: of the services.
        connections: to the database, at most, besides one for leases.
        queue: task queue that the process is going to poll: it is listed as a live worker; None: it is none.
        run: the only run that it serves; None: any.
    """
    host, pid = socket.gethostname(), os.getpid()
    name = f"{host}/{pid}"
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for chatty in ("temporalio.activity", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    home = Home.of(None).root
    caches = home / "cache" / kind
    await asyncio.to_thread(sweep, caches)  # what processes that were killed have left
    cache = make_owned_folder(caches)
    application = f"stepwell/{kind}/{pid}"
    database = Database(addresses.appender, pool_size=connections, wait_s=math.inf, application=application)
    leasing = Database(addresses.appender, pool_size=1, application=application)
    objects = ObjectStore(addresses.bucket, wait_s=math.inf)
    async with AsyncExitStack() as open_until_the_end:
        open_until_the_end.push_async_callback(database.close)
        open_until_the_end.push_async_callback(leasing.close)
        open_until_the_end.push_async_callback(objects.close)
        open_until_the_end.push_async_callback(asyncio.to_thread, remove_tree, cache)
        database_name = f"the database {shown(driver_url(addresses.appender))}"
        await patiently(database_name, math.inf, lambda: asyncio.to_thread(check, addresses.appender))
        client = await connect(addresses, identity=f"{kind}:{name}", wait_s=math.inf)
        if queue is not None:
            worker = WorkerAddress(f"{kind}-{uuid.uuid4().hex[:8]}", kind, run, queue, host, pid)
            await open_until_the_end.enter_async_context(present(leasing, worker))
        stores = Stores(Ledger(database), BlobStore(database, objects), actor=f"{kind}:{name}")
        yield Runtime(addresses, database, leasing, stores, client, cache, home / "models", name)


async def connect(addresses: Addresses, *, identity: str, wait_s: float = 0.0) -> Client:
    """A Temporal client that carries our models and notices a network that drops packets.

    Args:
        addresses: of the services.
        identity: whose it is, in the server's histories.
        wait_s: how long to wait for a server that is away.

    Raises:
        RuntimeError: the server does not answer.
    """
    began, told = time.monotonic(), False
    while True:
        try:
            async with asyncio.timeout(CONNECT_S):
                client = await Client.connect(
                    addresses.temporal,
                    namespace=addresses.namespace,
                    data_converter=pydantic_data_converter,
                    identity=identity,
                    keep_alive_config=KEEP_ALIVE,
                    retry_config=RETRY,
                    connect_timeout=timedelta(seconds=CONNECT_S),
                )
        except (RuntimeError, RPCError, TimeoutError) as error:
            if time.monotonic() - began + LOOK_AGAIN_S > wait_s:
                raise RuntimeError(f"Temporal does not answer at {addresses.temporal}: {error or 'silence'}") from error
            if not told:
                logging.warning("waiting for Temporal at %s: %s", addresses.temporal, error or "silence")
                told = True
        else:
            if told:
                logging.warning("Temporal is back after %.1f s", time.monotonic() - began)
            return client
        await asyncio.sleep(LOOK_AGAIN_S)


async def serve(
    client: Client,
    queue: str,
    activities: Sequence[Callable[..., Any]],
    *,
    workflows: Sequence[type] = (),
    concurrency: int = 100,
    pollers: int = 4,
    deployment: WorkerDeploymentConfig | None = None,
    polling: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Polls a queue until SIGTERM or SIGINT, then ends within the grace.

    Args:
        client: of the process.
        queue: which.
        activities: what it does.
        workflows: what it decides.
        concurrency: activities at once.
        pollers: polls at once, of each kind.
        deployment: its build, for a worker with workflows.
        polling: called once polls are under way.
    """
    stop = asyncio.Event()
    on_stop_signals(stop.set)
    worker = make_worker(
        client,
        queue,
        activities,
        workflows=workflows,
        concurrency=concurrency,
        pollers=pollers,
        deployment=deployment,
    )
    async with worker:
        if polling is not None:
            await polling()
        await stop.wait()


def make_worker(
    client: Client,
    queue: str,
    activities: Sequence[Callable[..., Any]],
    *,
    workflows: Sequence[type] = (),
    concurrency: int = 100,
    pollers: int = 4,
    deployment: WorkerDeploymentConfig | None = None,
) -> Worker:
    """A worker on one queue, which polls while it is entered, and ends within the grace. Arguments as of `serve`.

    Raises:
        WrongActivity: an activity is not as it is declared.
    """
    check_activities(activities)
    return Worker(
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
        max_heartbeat_throttle_interval=HEARTBEATS_APART,
        sticky_queue_schedule_to_start_timeout=STICKY,
        deployment_config=deployment,
        # Unnamed, the SDK would hash every imported module in this thread: 1.3 s of CPU with torch, the loop silent.
        build_id=None if deployment else build_id(),
        interceptors=[BeatingInterceptor()],
    )
