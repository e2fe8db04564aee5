"""Fixtures: the migrated database with its roles, and ledger and blob store on it.

All tests share one database; each takes stream names and runs of its own from `fresh`.
"""

import itertools
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest
import pytest_asyncio

from db.blobs import BlobStore
from db.database import Database, driver_url
from db.ledger import Ledger
from db.migrate import upgrade
from db.objects import ObjectStore, S3Address

_COUNTER = itertools.count()


@dataclass(frozen=True)
class DatabaseUrls:
    """Addresses of one database, by role."""

    migrator: str
    appender: str
    projector: str
    auditor: str


def plain_url(url: str) -> str:
    """The address as psycopg alone takes it."""
    return driver_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def database(services) -> DatabaseUrls:
    """The services' database, migrated."""
    upgrade(services.migrator)
    return DatabaseUrls(
        *(plain_url(getattr(services, role)) for role in ("migrator", "appender", "projector", "auditor"))
    )


@pytest.fixture(scope="session")
def bucket(services) -> S3Address:
    """The services' bucket."""
    return services.bucket


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def connections(database: DatabaseUrls) -> AsyncIterator[Database]:
    """A worker's connections: the appender's role."""
    opened = Database(database.appender, pool_size=8)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def blobs(connections: Database, bucket: S3Address) -> AsyncIterator[BlobStore]:
    """The blob store, as a worker has it."""
    objects = ObjectStore(bucket)
    yield BlobStore(connections, objects)
    await objects.close()


@pytest.fixture(scope="session")
def ledger(connections: Database, blobs: BlobStore) -> Ledger:
    """The ledger, as a worker has it."""
    return Ledger(connections, blobs)


@pytest.fixture(scope="session")
def fresh() -> Callable[[], str]:
    """Draws a run name that no other test has."""
    return lambda: f"t{os.getpid()}-{next(_COUNTER):05}"  # of one length: no name begins another
