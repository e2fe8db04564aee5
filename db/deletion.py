"""Deletes the bytes of a blob for good: the one thing that is ever taken out of the stores, and it leaves an event.

First the event, then the bytes: a deletion that was interrupted is asked for again, and goes on.
"""

from sqlalchemy import text

from db.blobs import object_key
from db.database import Database
from db.errors import BlobMissing
from db.ledger import Ledger
from db.objects import ObjectStore
from stepwell.events import PayloadDeleted
from stepwell.events.streams import deleted_stream

_FIND = text("SELECT size_bytes, place FROM blobs WHERE digest = :digest")
_FORGET = text(
    "WITH classes AS (DELETE FROM blob_retentions WHERE digest = :digest) DELETE FROM blobs WHERE digest = :digest"
)


async def delete_payload(
    ledger: Ledger, owner: Database, objects: ObjectStore, digest: str, *, reason: str, who: str, actor: str
) -> PayloadDeleted:
    """Records the deletion of a blob and deletes its bytes, whichever runs name it.

    Args:
        ledger: Where it is recorded.
        owner: Connections of the role that owns the tables: workers may not delete.
        objects: The bucket.
        digest: Which blob.
        reason: Why.
        who: On whose account.
        actor: `control:<id>`, who appends.

    Raises:
        BlobMissing: it is not stored.
        DatabaseRefused: the role may not delete.
        DatabaseUnavailable, BlobStoreUnavailable: no answer; ask again.
    """
    rows = await owner.rows(_FIND, {"digest": digest})
    if not rows:
        raise BlobMissing(f"blob {digest} is not stored: there is nothing to delete")
    event = PayloadDeleted(digest=digest, size_bytes=rows[0].size_bytes, reason=reason, who=who)
    await ledger.append(deleted_stream(digest), [event], expected_seq=0, actor=actor)
    if rows[0].place == "s3":
        await objects.delete(object_key(digest))
    await owner.rows(_FORGET, {"digest": digest})
    return event
