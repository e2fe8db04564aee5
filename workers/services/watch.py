"""Says in a line when a service goes away, and in another when it is back; nothing is decided by it."""

import asyncio
import contextlib
import logging
import math
import shutil
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
import psycopg
from temporalio.client import Client
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig
from temporalio.service import RPCError

from workers.services.addresses import Addresses, embedded_services
from workers.services.errors import ServiceError
from workers.services.external import shown_address
from workers.services.home import Home
from workers.services.lifecycle import revive
from workers.services.settings import ServiceName

LOOK_S = 2.0
"""Between two looks."""
SILENCE_S = 5.0
"""A service that says nothing for this long is away."""
FULL_BYTES = 32 << 20
"""With less space left PostgreSQL cannot begin another log segment, nor SeaweedFS a volume."""


def quieten_client() -> None:
    """Keeps Temporal's own log of retries out of a view; call it before the first client is made."""
    logging = LoggingConfig(filter="error,temporalio_client=off")
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=logging)), error_if_already_set=False)


@asynccontextmanager
async def watched(addresses: Addresses, tell: Callable[[str], None]) -> AsyncGenerator[None]:
    """Tells what goes away during the block; what waits for it in this process need not say so again."""
    log = logging.getLogger("db.outages")
    before = log.level
    log.setLevel(logging.ERROR)
    looking = asyncio.create_task(ServicesWatch(addresses, tell).keep_looking())
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.wait([looking])
        log.setLevel(before)
        if not looking.cancelled():
            looking.result()


class ServicesWatch:
    """Looks at the three services beside a view.

    Args:
        addresses: Where they are.
        tell: Where lines go.
        home: Of the embedded ones; `$STEPWELL_HOME` or `.stepwell` by default.
    """

    def __init__(self, addresses: Addresses, tell: Callable[[str], None], home: Path | None = None) -> None:
        self._addresses = addresses
        self._tell = tell
        self._home = Home.of(home)
        self._embedded = embedded_services()
        self._away: dict[str, float] = {}
        """What was told to be away: since when."""

    async def keep_looking(self) -> None:
        """Looks until cancelled; embedded servers whose supervisor was killed are started again."""
        client = await Client.connect(self._addresses.temporal, namespace=self._addresses.namespace, lazy=True)
        looks: dict[ServiceName, Callable[[], Awaitable[str]]] = {
            ServiceName.TEMPORAL: lambda: _look_at_temporal(client),
            ServiceName.POSTGRES: lambda: _look_at_postgres(self._addresses.auditor),
            ServiceName.S3: lambda: _look_at_s3(self._addresses.bucket.endpoint),
        }
        while True:
            await asyncio.gather(*(self._look(service, look) for service, look in looks.items()))
            await self._revive()
            self._look_at_disks()
            await asyncio.sleep(LOOK_S)

    async def _look(self, service: ServiceName, look: Callable[[], Awaitable[str]]) -> None:
        try:
            async with asyncio.timeout(SILENCE_S):
                problem = await look()
        except TimeoutError:
            problem = f"silent for {SILENCE_S:.0f} s"
        self._note(
            service,
            f"{service} does not answer at {shown_address(self._addresses, service)} ({problem}); the run waits for it"
            if problem
            else "",
            f"{service} answers again",
        )

    def _note(self, what: str, problem: str, repaired: str) -> None:
        """Tells what has changed."""
        if problem and what not in self._away:
            self._away[what] = time.monotonic()
            self._tell(problem)
        elif not problem and (since := self._away.pop(what, None)) is not None:
            self._tell(f"{repaired}, after {math.ceil(time.monotonic() - since)} s")

    async def _revive(self) -> None:
        if not self._embedded:
            return
        try:
            if await asyncio.to_thread(revive, self._home.root):
                self._tell("the supervisor of the embedded services was gone: it and they are started again")
        except ServiceError as error:
            self._tell(f"the embedded services cannot be started again: {error}")

    def _look_at_disks(self) -> None:
        for service in self._embedded:
            with contextlib.suppress(FileNotFoundError):  # a server may remove a folder while we look
                self._look_at_disk(service, self._home.data(service))

    def _look_at_disk(self, service: ServiceName, folder: Path) -> None:
        """Its parts may lie on other disks, as PostgreSQL's log does for speed."""
        free = {part: shutil.disk_usage(part).free for part in (folder, *folder.iterdir()) if part.is_dir()}
        least = min(free, key=lambda part: free[part])
        problem = ""
        if free[least] < FULL_BYTES:
            problem = f"the disk of {service} is full: {free[least] >> 20} MiB are left at {least}; free some space, "
            problem += "the run waits"
        self._note(f"disk of {service}", problem, f"the disk of {service} has space again")


async def _look_at_temporal(client: Client) -> str:
    try:
        await client.service_client.check_health(timeout=timedelta(seconds=SILENCE_S))
    except (RPCError, RuntimeError) as error:
        return _first_line(error)
    return ""


async def _look_at_postgres(url: str) -> str:
    """By a connection of its own: those that are open may outlive the server's readiness for new ones."""
    plain = url.replace("postgresql+psycopg://", "postgresql://", 1)
    try:
        async with await psycopg.AsyncConnection.connect(plain, connect_timeout=int(SILENCE_S)) as connection:
            await connection.execute("SELECT 1")
    except psycopg.Error as error:
        return _first_line(error)
    return ""


async def _look_at_s3(endpoint: str | None) -> str:
    """Any answer will do: this is nobody's request, so it may be refused."""
    if endpoint is None:
        return ""
    try:
        async with aiohttp.ClientSession() as session, session.get(endpoint):
            return ""
    except aiohttp.ClientError as error:
        return _first_line(error)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
