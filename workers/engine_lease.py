"""An engine's place among those that take traffic: held by a lease, given up when it is lost, taken again when proven.

Three things go on beside the engine's work. The lease is renewed, and says which version the engine has attested. An
engine whose lease ran out (it was stopped, or cut off) takes no traffic until it has proven what the run serves by
then, and registered again. One that is behind the others, because its load failed or came too late, follows them.
"""

import asyncio
import logging

from activities.engine import EngineActivities
from activities.folds import newest_version
from activities.stores import Stores
from db.database import Database
from db.engines import Engines, Lease
from db.errors import BlobStoreUnavailable, DatabaseUnavailable, DiskFull, LeaseLost
from stepwell.events import ValidationOpened, VersionAttested
from stepwell.events.streams import engine_stream

LEASE_S = 10.0
"""An engine that does not renew is out of traffic after this."""
RENEW_S = LEASE_S / 4
TELL_S = 0.25
"""A version that was attested is told this soon: rollouts ask the engines that say so."""
AWAY = (DatabaseUnavailable, BlobStoreUnavailable, DiskFull, TimeoutError)
"""What passes by itself."""


class EngineLease:
    """One engine's registration.

    Args:
        database: connections that nothing else keeps busy.
        activities: what loads and attests.
        run: which run.
        url: where it answers.
        secret: bearer token that it answers to.
        queue: its own task queue.
    """

    def __init__(
        self, database: Database, activities: EngineActivities, run: str, url: str, secret: str, queue: str
    ) -> None:
        self._register = Engines(database)
        self._activities = activities
        self._run = run
        self._url = url
        self._secret = secret
        self._queue = queue
        self._lease: Lease | None = None
        self._told: int | None = None
        """Version that the lease speaks for."""

    async def take(self) -> None:
        """Appears as live: the engine must have attested what the run serves.

        Raises:
            DatabaseUnavailable: no connection.
        """
        version = self._activities.version
        self._lease = await self._register.register(
            self._activities.engine_id,
            self._run,
            self._url,
            self._queue,
            secret=self._secret,
            ttl_s=LEASE_S,
            version=version,
        )
        self._told = version

    async def keep(self) -> None:
        """Renews until cancelled; comes back after a loss."""
        while True:
            await self._pause()
            try:
                if self._lease is None:
                    await self._come_back()
                else:
                    await self._renew(self._lease)
            except AWAY as error:
                logging.warning("engine %s could not renew its lease: %s", self._activities.engine_id, error)

    async def follow(self) -> None:
        """Loads what other engines of the run have attested meanwhile, until cancelled.

        Raises:
            EngineError, ProbeMismatch, DigestMismatch: the engine cannot serve it: start it anew.
        """
        while True:
            await asyncio.sleep(RENEW_S)
            if self._lease is None or self._activities.busy:
                continue
            try:
                if await self._is_behind():
                    await self._serve_what_the_run_serves()
            except AWAY as error:
                logging.warning("engine %s could not follow the others: %s", self._activities.engine_id, error)

    async def release(self) -> None:
        """Is live no longer; a lease that cannot be given back runs out by itself."""
        if self._lease is None:
            return
        try:
            async with asyncio.timeout(RENEW_S):
                await self._register.release(self._lease)
        except AWAY as error:
            logging.warning("engine %s could not give its lease back: %s", self._activities.engine_id, error)

    async def _pause(self) -> None:
        """Until the next renewal is due, or there is another version to tell."""
        for _ in range(round(RENEW_S / TELL_S)):
            await asyncio.sleep(TELL_S)
            if self._lease is not None and self._told != self._activities.version:
                return

    async def _renew(self, lease: Lease) -> None:
        version = self._activities.version
        try:
            async with asyncio.timeout(LEASE_S):
                await self._register.renew(lease, ttl_s=LEASE_S, version=version)
            self._told = version
        except LeaseLost as lost:
            logging.warning("%s", lost)
            self._activities.shut()
            self._lease = None

    async def _come_back(self) -> None:
        await self._serve_what_the_run_serves()
        await self.take()

    async def _is_behind(self) -> bool:
        held = self._activities.version
        validated = await validated_version(self._activities.stores, self._run)
        if validated is not None:
            return held != validated
        live = await self._register.live(self._run)
        return held is None or any(engine.version is not None and engine.version > held for engine in live)

    async def _serve_what_the_run_serves(self) -> None:
        await self._activities.serve(self._run, await served_version(self._activities.stores, self._run))


async def validated_version(stores: Stores, run: str) -> int | None:
    """The version that is being validated: only it is asked for meanwhile, however many newer ones were served."""
    heads = await stores.ledger.heads(f"validation/{run}/")
    is_open = [name for name, head in heads.items() if head.seq == 0]  # opened, and not closed
    opened = [each for stream in (await stores.ledger.read_many(is_open)).values() for each in stream[:1]]
    newest = max(opened, key=lambda each: each.envelope.time, default=None)
    return newest.event.version if newest is not None and isinstance(newest.event, ValidationOpened) else None


async def served_version(stores: Stores, run: str) -> int:
    """The version that the run's engines serve now: the one that is being validated, else the highest that any of them
    attested, else the first that will be asked for: a fork's first step may be generated by a version older than the
    one that it begins with."""
    validated = await validated_version(stores, run)
    if validated is not None:
        return validated
    recorded = await stores.ledger.read_prefix(engine_stream(run, ""))
    attested = [each.event.version for each in recorded if isinstance(each.event, VersionAttested)]
    if attested:
        return max(attested)
    fork = (await stores.run_facts(run)).fork
    if fork is not None:
        return fork.versions[0].version
    newest = newest_version(await stores.weights(run))
    return 0 if newest is None else newest.version
