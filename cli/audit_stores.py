"""What the actions of `stepwell audit` open: the ledger with the auditor's role, and the blobs."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

from cli.reading import Reader, open_reader
from cli.services_to_read import services_to_read
from db.blobs import BlobStore
from db.database import Database
from db.objects import ObjectStore
from workers.services.addresses import Addresses

T = TypeVar("T")


class AuditStores(NamedTuple):
    """Open stores."""

    database: Database
    """Connections that can change nothing."""
    blobs: BlobStore
    """Blobs, to be read."""
    reader: Reader
    """Events of runs."""


def on_run(name: str, work: Callable[[AuditStores], Awaitable[T]]) -> T:
    """Does something with the stores of the services there are, for a run that exists. Raises as `on_run_at`."""
    return on_run_at(name, lambda _, stores: work(stores))


def on_run_at(name: str, work: Callable[[Addresses, AuditStores], Awaitable[T]]) -> T:
    """As `on_run`, for work that opens more of the services.

    Raises:
        ServiceError: there never were any services, or they do not start.
        NoSuchRun: there is no run of this name; says which there are.
        OldDatabase, NewerDatabase, DatabaseUnavailable: the database cannot be used.
    """

    async def opened(addresses: Addresses) -> T:
        async with audit_stores(addresses) as stores:
            await stores.reader.require(name)
            return await work(addresses, stores)

    with services_to_read() as addresses:
        return asyncio.run(opened(addresses))


@asynccontextmanager
async def audit_stores(addresses: Addresses) -> AsyncGenerator[AuditStores]:
    """The stores, for the block."""
    database, objects = Database(addresses.auditor), ObjectStore(addresses.bucket)
    try:
        async with open_reader(addresses) as reader:
            yield AuditStores(database, BlobStore(database, objects), reader)
    finally:
        await objects.close()
        await database.close()
