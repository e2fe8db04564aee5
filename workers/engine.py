"""The engine worker: owns one generation engine of one run, and a task queue of its own.

It takes no traffic before it has attested what its run serves: a lease, by which rollouts find it, is taken after that.
"""

import asyncio
import secrets
import uuid

from transformers.utils import logging as transformers_logging

from activities.engine import EngineActivities
from activities.folders import get_folder
from activities.folds import newest_version
from activities.stores import Stores
from db.engines import Engines, Lease
from db.errors import DatabaseUnavailable, LeaseLost
from db.ledger import Ledger
from stepwell.events import EngineStarted, VersionAttested, VersionCreated
from stepwell.events.streams import engine_stream, weights_stream
from stepwell.policy.engine_http.server import listen, make_app
from stepwell.policy.engine_http.service import EngineService
from stepwell.policy.engines import make_engine
from workers.runtime import Runtime, runtime, serve
from workers.services.addresses import Addresses

LEASE_S = 10.0
"""An engine that does not renew is out of traffic after this."""
LOOK_S = 0.5


async def run_engine(addresses: Addresses, *, run: str, host: str = "127.0.0.1") -> None:
    """Serves a run's rollouts until told to stop.

    Args:
        addresses: of the services.
        run: which run.
        host: address to listen on.
    """
    transformers_logging.disable_progress_bar()
    async with runtime("engine", addresses, connections=3) as opened:
        created = await _version_0(opened.stores, run)
        recipe = (await opened.stores.run_facts(run)).recipe
        engine_id = f"{recipe.engine.kind}-{uuid.uuid4().hex[:8]}"
        opened.stores.actor = f"engine:{engine_id}"
        folder = await get_folder(opened.stores.blobs, created.export, opened.cache)
        engine = await make_engine(recipe.engine, folder)
        service = EngineService(engine)
        secret = secrets.token_urlsafe(24)
        listening = await listen(make_app(service, secret), host)
        try:
            head = await opened.stores.ledger.append(
                engine_stream(run, engine_id),
                [EngineStarted(engine=engine_id, backend=recipe.engine.kind, worker=opened.name)],
                expected_seq=0,
                actor=opened.stores.actor,
            )
            activities = EngineActivities(opened.stores, service, engine_id, opened.cache, head.seq + 1, created.export)
            await activities.serve(run, await served_version(opened.stores.ledger, run))
            await _serve_leased(opened, activities, run, listening.url, secret)
        finally:
            await listening.close()
            await engine.close()


async def served_version(ledger: Ledger, run: str) -> int:
    """The version that the run's engines serve now: the last one that any of them attested, else the newest."""
    recorded = await ledger.read_prefix(engine_stream(run, ""))
    attested = [each for each in recorded if isinstance(each.event, VersionAttested)]
    if attested:
        last = max(attested, key=lambda each: each.envelope.time).event
        assert isinstance(last, VersionAttested)
        return last.version
    newest = newest_version(await ledger.read(weights_stream(run)))
    return 0 if newest is None else newest.version


async def _serve_leased(opened: Runtime, activities: EngineActivities, run: str, url: str, secret: str) -> None:
    register = Engines(opened.database)
    queue = f"engine-{activities.engine_id}"

    async def lease() -> Lease:
        return await register.register(activities.engine_id, run, url, queue, secret=secret, ttl_s=LEASE_S)

    async def renew(held: Lease) -> None:
        while True:
            await asyncio.sleep(LEASE_S / 4)
            try:
                await register.renew(held, ttl_s=LEASE_S)
            except LeaseLost:
                held = await lease()
            except DatabaseUnavailable:
                continue  # the lease runs out by itself if this lasts

    held = await lease()
    renewing = asyncio.create_task(renew(held))
    try:
        await serve(opened.client, queue, [activities.load_weights], concurrency=1, pollers=1)
    finally:
        renewing.cancel()
        await register.release(held)


async def _version_0(stores: Stores, run: str) -> VersionCreated:
    """Waits until the trainer has made version 0."""
    while True:
        recorded = await stores.ledger.read(weights_stream(run))
        for each in recorded:
            if isinstance(each.event, VersionCreated):
                return each.event
        await asyncio.sleep(LOOK_S)
