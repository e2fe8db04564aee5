"""The engine worker: owns one generation engine of one run, and a task queue of its own.

It takes no traffic before it has attested what its run serves: a lease, by which rollouts find it, is taken after that.
A process whose engine is dead ends: whoever started it starts it anew.
"""

import asyncio
import logging
import secrets
import uuid

from transformers.utils import logging as transformers_logging

from activities.engine import EngineActivities
from activities.folders import get_folder
from activities.stores import NoSuchRun, Stores
from stepwell.events import EngineStarted, VersionCreated
from stepwell.events.streams import engine_stream
from stepwell.policy.engine_http.server import listen, make_app
from stepwell.policy.engine_http.service import EngineService
from stepwell.policy.engines import make_engine
from stepwell.policy.protocol import EngineError
from workers.engine_lease import EngineLease, served_version
from workers.own_address import own_address
from workers.runtime import Runtime, runtime, serve
from workers.services.addresses import Addresses

LOOK_S = 0.5
CHECK_EVERY_S = 2.0
ANSWER_S = 120.0
"""An engine silent for this long counts as hung; it is silent while it computes a step, which is long on a CPU."""
LOADING_ANSWER_S = 600.0
"""The same while it loads."""


async def run_engine(addresses: Addresses, *, run: str, host: str | None = None) -> None:
    """Serves a run's rollouts until told to stop.

    Args:
        addresses: of the services.
        run: which run.
        host: address to listen on; by default the one by which other machines reach this one.

    Raises:
        EngineError: the engine is dead or hangs, or cannot serve what the run serves.
    """
    transformers_logging.disable_progress_bar()
    unique = uuid.uuid4().hex[:8]
    queue = f"engine-{unique}"
    async with runtime("engine", addresses, connections=3, queue=queue, run=run) as opened:
        created = await _version_0(opened.stores, run)
        recipe = (await opened.stores.run_facts(run)).recipe
        engine_id = f"{recipe.engine.kind}-{unique}"
        opened.stores.actor = f"engine:{engine_id}"
        folder = await get_folder(opened.stores.blobs, created.export, opened.cache)
        engine = await make_engine(recipe.engine, folder)
        service = EngineService(engine)
        secret = secrets.token_urlsafe(24)
        listening = await listen(make_app(service, secret), host or own_address(addresses.temporal))
        try:
            await opened.stores.ledger.append(
                engine_stream(run, engine_id),
                [EngineStarted(engine=engine_id, backend=recipe.engine.kind, worker=opened.name)],
                expected_seq=0,
                actor=opened.stores.actor,
            )
            activities = EngineActivities(opened.stores, service, engine_id, opened.cache, created.export)
            await activities.serve(run, await served_version(opened.stores, run))
            lease = EngineLease(opened.leasing, activities, run, listening.url, secret, queue)
            await _serve_leased(opened, activities, lease, queue)
        finally:
            await listening.close()
            await engine.close()


async def _serve_leased(opened: Runtime, activities: EngineActivities, lease: EngineLease, queue: str) -> None:
    await lease.take()
    try:
        async with asyncio.TaskGroup() as beside:
            tasks = [
                beside.create_task(lease.keep()),
                beside.create_task(lease.follow()),
                beside.create_task(_check(activities)),
            ]
            await serve(opened.client, queue, [activities.load_weights], concurrency=1, pollers=1)
            for task in tasks:
                task.cancel()
    finally:
        await lease.release()


async def _check(activities: EngineActivities) -> None:
    """Asks the engine whether it is well, until cancelled.

    Raises:
        EngineError: it is dead, or does not answer.
    """
    while True:
        await asyncio.sleep(CHECK_EVERY_S)
        patience_s = LOADING_ANSWER_S if activities.busy else ANSWER_S
        try:
            async with asyncio.timeout(patience_s):
                await activities.service.engine.check()
        except TimeoutError:
            raise EngineError(f"the engine did not answer for {patience_s:.0f} s: it hangs") from None


async def _version_0(stores: Stores, run: str) -> VersionCreated:
    """Waits until there is such a run, and its trainer has made version 0."""
    is_told = False
    while True:
        try:
            for each in await stores.weights(run):
                if isinstance(each.event, VersionCreated):
                    return each.event
        except NoSuchRun as missing:  # on a cluster an engine may be up before its run; or the name is a wrong one
            if not is_told:
                logging.warning("the engine waits for its run: %s", missing)
                is_told = True
        await asyncio.sleep(LOOK_S)
