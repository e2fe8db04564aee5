"""The steps of a run, for verbs that compute them again."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from cli.reading import open_reader
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.objects import ObjectStore
from db.step_record import RunSteps
from workers.services.addresses import Addresses


@asynccontextmanager
async def open_steps(addresses: Addresses, name: str) -> AsyncGenerator[RunSteps]:
    """A run's steps, for the block, with the auditor's role.

    Raises:
        NoSuchRun: there is none of this name.
        DatabaseUnavailable: no connection.
    """
    async with open_reader(addresses) as reader:
        await reader.require(name)
    database, objects = Database(addresses.auditor), ObjectStore(addresses.bucket)
    try:
        blobs = BlobStore(database, objects)
        steps = await RunSteps.open(Ledger(database), blobs, name)
        assert steps is not None, f"run {name} has events, and no stream of its own"
        yield steps
    finally:
        await objects.close()
        await database.close()
