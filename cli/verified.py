"""An audit of a run for its page."""

import time

from db.blobs import BlobStore
from db.database import Database
from db.objects import ObjectStore
from db.run_record import read_run
from stepwell.audit.verification import verify
from stepwell.report.verified import Verified
from workers.services.addresses import Addresses


async def verify_run(addresses: Addresses, run: str) -> Verified:
    """Verifies a run that there is, from its ledger and its blobs, and says up to which head.

    Raises:
        DatabaseUnavailable, BlobStoreUnavailable: no answer.
    """
    at_s, began = time.time(), time.monotonic()
    database, objects = Database(addresses.auditor), ObjectStore(addresses.bucket)
    try:
        record = await read_run(database, BlobStore(database, objects), run)
    finally:
        await objects.close()
        await database.close()
    assert record is not None, f"run {run} has events, and no record"
    verification, head = verify(record), record.run_events.child
    return Verified(verification, head.seq, head.head, at_s, time.monotonic() - began)
