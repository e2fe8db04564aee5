"""Whether a stored stream is what was appended, from its rows alone."""

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Row

from db.errors import BrokenStream, NotOwner
from db.owners import check_owner
from db.recorded import Head, Parse, Recorded
from stepwell.events.envelope import GENESIS, BrokenLink, verify_link


def verified(stream: str, rows: Iterable[Row[Any]], parse: Parse) -> Iterator[Recorded]:
    """The events of a stream's rows (seq, key, type, hash, exact), in order of seq, each checked.

    The bytes hash to what stands beside them, name the event before, are canonical and belong here; the copies beside
    them agree; no number is missing; the appender owns the stream; the type is known and gives the same key again.

    Raises:
        BrokenStream: the first row that does not hold, and why.
    """
    keys: set[str] = set()
    owned_by = ""
    before = GENESIS
    for seq, row in enumerate(rows):
        if row.seq != seq:
            raise BrokenStream(stream, seq, f"the event is missing: the next one stored is #{row.seq}")
        try:
            envelope = verify_link(row.exact, stream=stream, seq=seq, prev_hash=before, hash=row.hash)
            if envelope.actor != owned_by:  # mostly one
                check_owner(stream, envelope.actor)
                owned_by = envelope.actor
            event = parse(envelope.type, envelope.schema, dict(envelope.body))
        except (BrokenLink, NotOwner, ValueError) as error:
            raise BrokenStream(stream, seq, str(error)) from error
        if (row.key, row.type) != (envelope.key, envelope.type):
            raise BrokenStream(
                stream, seq, f"stored as {row.type} {row.key!r}, its bytes say {envelope.type} {envelope.key!r}"
            )
        if event.key() != envelope.key:
            raise BrokenStream(stream, seq, f"its key is {envelope.key!r}, its body makes it {event.key()!r}")
        if envelope.key in keys:
            raise BrokenStream(stream, seq, f"the key {envelope.key!r} stands twice")
        keys.add(envelope.key)
        before = envelope.hash
        yield Recorded(envelope, event)


def verify_rows(stream: str, rows: Iterable[Row[Any]], parse: Parse) -> Head | None:
    """Fold a stream's rows, checking each as `verified` does.

    Returns:
        Where the stream ends; None for no rows. A stream cut short at its end verifies: only its parent's commitment,
        compared with what is returned, tells.

    Raises:
        BrokenStream: the first row that does not hold, and why.
    """
    head: Head | None = None
    for recorded in verified(stream, rows, parse):
        head = recorded.head
    return head
