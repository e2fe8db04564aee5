"""The ledger: event streams that are appended to, never changed.

An append is one statement, so one round trip: the database function `append_events` takes the time, reads the last
hash, fills both into the drafted bytes and inserts. Two unique indices, (stream, seq) and (stream, key), decide every
race; who loses reads what stands there, and either it is the same request, which is a success, or it is `Fenced`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy.exc
from sqlalchemy import Row, text

from db.blobs import SMALL_BYTES, BlobStore, blob_digest, check_retention
from db.database import Database, sqlstate
from db.errors import Fenced
from db.owners import check_owner
from db.recorded import Head, Page, Parse, Position, Recorded
from db.verify import verify_rows
from stepwell import events as event_types
from stepwell.events.base import Event
from stepwell.events.canonical import canonical_json
from stepwell.events.envelope import Draft, draft, open_envelope

_UNIQUE = "23505"
"""SQLSTATE unique_violation."""

_APPEND = text(
    "SELECT at, head FROM append_events(CAST(:stream AS text), CAST(:expected AS bigint), CAST(:keys AS text[]), "
    "CAST(:types AS text[]), CAST(:heads AS bytea[]), CAST(:middles AS bytea[]), CAST(:tails AS bytea[]), "
    "CAST(:digests AS text[]), CAST(:blobs AS bytea[]), CAST(:retention AS text))"
)
_READ = text("SELECT exact FROM events WHERE stream = :stream AND seq >= :from_seq ORDER BY seq")
_READ_MANY = text("SELECT exact FROM events WHERE stream = ANY(:streams) ORDER BY stream, seq")
_READ_PREFIX = text("SELECT exact FROM events WHERE stream >= :low AND stream < :high ORDER BY stream, seq")
_READ_KEYS = text(
    "SELECT exact FROM events WHERE stream = :stream AND (key = ANY(:keys) OR seq = :expected) ORDER BY seq"
)
_HEAD = text("SELECT seq, hash FROM events WHERE stream = :stream ORDER BY seq DESC LIMIT 1")
_HEADS = text(
    "SELECT DISTINCT ON (stream) stream, seq, hash FROM events WHERE stream >= :low AND stream < :high "
    "ORDER BY stream, seq DESC"
)
_READ_AFTER = text(
    "SELECT h.horizon, e.* FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon) h LEFT JOIN LATERAL ("
    "SELECT xid, position, exact FROM events WHERE (xid, position) > (CAST(:xid AS xid8), :position) "
    "AND xid < h.horizon AND stream >= :low AND stream < :high ORDER BY xid, position LIMIT :limit) e ON true "
    "ORDER BY e.xid, e.position"
)
_VERIFY = text("SELECT seq, key, type, hash, exact FROM events WHERE stream = :stream ORDER BY seq")
_MENTIONS = text(
    "SELECT exact FROM events WHERE stream >= :low AND stream < :high "
    "AND position(convert_to(:word, 'UTF8') IN exact) > 0 ORDER BY stream, seq"
)
_STREAMS = text("SELECT stream FROM events WHERE stream >= :low AND stream < :high AND seq = 0 ORDER BY position")


_LAST = 2**63 - 1
"""Larger than every position."""


def prefix_range(prefix: str) -> dict[str, str]:
    """Bounds of the names that begin with a prefix: every name sorts below the prefix and the last code point."""
    return {"low": prefix, "high": prefix + "\U0010ffff"}


class Ledger:
    """Streams of events in one database. Safe for use by many tasks of one event loop.

    Args:
        database: Connections; shared with the blob store.
        blob_store: Takes the large blobs of an append; without one they are refused.
        parse: From a stored body to its event.
    """

    def __init__(
        self, database: Database, blob_store: BlobStore | None = None, *, parse: Parse = event_types.parse
    ) -> None:
        self._database = database
        self._blob_store = blob_store
        self._parse = parse

    async def append(
        self,
        stream: str,
        events: Sequence[Event],
        *,
        expected_seq: int,
        actor: str,
        blobs: Sequence[bytes] = (),
        retention: str = "run",
    ) -> Head:
        """Append events to a stream in one transaction, with the small blobs that they name.

        Asked again, whether because an answer was lost or because a worker does its work over, it succeeds: an append
        whose keys all stand in the stream with equal facts has happened; measured fields (times, actors) may differ.

        Args:
            stream: Name of the stream.
            events: At least one, with distinct keys.
            expected_seq: Sequence number that the first of them shall have: 0, or the last one's plus 1.
            actor: `<kind>:<id>` of the appender; the kind must own the stream.
            blobs: Bytes that the events name by their SHA-256. Those under `db.blobs.SMALL_BYTES` are stored in the
                same transaction, larger ones before it in the blob store.
            retention: Class of the blobs.

        Returns:
            The head after these events.

        Raises:
            Fenced: the place is taken, or a key stands for other facts, or an event is missing before it.
            NotOwner: the actor's kind does not append to such streams.
            NotCanonical: an event holds a NaN or the like.
            DatabaseUnavailable: no connection; the append may or may not have happened, and may be asked again.
            DiskFull: the database's disk is full.
        """
        check_owner(stream, actor)
        keys = [event.key() for event in events]
        if not keys or len(set(keys)) != len(keys) or not all(keys) or "\0" in "".join([stream, *keys]):
            raise ValueError(
                f"{stream!r}: an append has one or more events with distinct keys, none empty or with a NUL; "
                f"these are {keys}"
            )
        drafts = [
            draft(
                stream=stream,
                seq=expected_seq + offset,
                key=keys[offset],
                type=event.type,
                schema=event.SCHEMA,
                actor=actor,
                body=event.body(),
            )
            for offset, event in enumerate(events)
        ]
        small = await self._put_large(blobs, retention)
        head = await self._insert(stream, expected_seq, keys, [e.type for e in events], drafts, small, retention)
        if head is not None:
            return head
        return await self._same_or_fenced(stream, events, keys, expected_seq)

    async def _put_large(self, blobs: Sequence[bytes], retention: str) -> list[bytes]:
        """Store the large blobs; the small ones, each once, remain to be stored."""
        check_retention(retention)
        large = [data for data in blobs if len(data) >= SMALL_BYTES]
        if large:
            if self._blob_store is None:
                raise ValueError(f"a blob of {len(large[0])} bytes needs a ledger with a blob store")
            await self._blob_store.put_many(large, retention=retention)
        return list({data: None for data in blobs if len(data) < SMALL_BYTES})

    async def _insert(
        self,
        stream: str,
        expected_seq: int,
        keys: list[str],
        types: list[str],
        drafts: Sequence[Draft],
        blobs: Sequence[bytes],
        retention: str,
    ) -> Head | None:
        """The head after the inserted events; None where place or key is taken, or the event before is missing."""
        values: dict[str, object] = {
            "stream": stream,
            "expected": expected_seq,
            "keys": keys,
            "types": types,
            "heads": [each.head for each in drafts],
            "middles": [each.middle for each in drafts],
            "tails": [each.tail for each in drafts],
            "digests": [blob_digest(data) for data in blobs],
            "blobs": list(blobs),
            "retention": retention,
        }
        try:
            rows = await self._database.rows(_APPEND, values)
        except sqlalchemy.exc.IntegrityError as error:
            if sqlstate(error) != _UNIQUE:
                raise
            return None
        return Head(expected_seq + len(drafts) - 1, rows[0].head) if rows else None

    async def read(self, stream: str, from_seq: int = 0) -> list[Recorded]:
        """A stream's events from a sequence number on, in order; empty for a stream that does not exist.

        Raises:
            DatabaseUnavailable: no connection.
            UnknownEvent: an event of a newer Stepwell.
        """
        return self._recorded(await self._database.rows(_READ, {"stream": stream, "from_seq": from_seq}))

    async def read_many(self, streams: Iterable[str]) -> dict[str, list[Recorded]]:
        """Several streams whole, by name; a stream that does not exist is empty."""
        found: dict[str, list[Recorded]] = {stream: [] for stream in streams}
        for recorded in self._recorded(await self._database.rows(_READ_MANY, {"streams": list(found)})):
            found[recorded.stream].append(recorded)
        return found

    async def read_prefix(self, prefix: str) -> list[Recorded]:
        """Every stream whose name begins so, in order of name and sequence. End the prefix with a slash, or `run/a` is
        also `run/ab`."""
        return self._recorded(await self._database.rows(_READ_PREFIX, prefix_range(prefix)))

    async def head(self, stream: str) -> Head | None:
        """Where a stream ends; None if it does not exist."""
        rows = await self._database.rows(_HEAD, {"stream": stream})
        return Head(rows[0].seq, rows[0].hash) if rows else None

    async def heads(self, prefix: str) -> dict[str, Head]:
        """Where each stream ends whose name begins so, by name."""
        return {row.stream: Head(row.seq, row.hash) for row in await self._database.rows(_HEADS, prefix_range(prefix))}

    async def streams(self, prefix: str) -> list[str]:
        """Names of the streams that begin so, the oldest first: in order of their first events, whatever clocks say."""
        return [row.stream for row in await self._database.rows(_STREAMS, prefix_range(prefix))]

    async def mentions(self, prefix: str, word: str) -> list[Recorded]:
        """Events with a word, as a digest, anywhere in their bytes, of the streams whose name begins so: looks through
        all of them."""
        return self._recorded(await self._database.rows(_MENTIONS, {**prefix_range(prefix), "word": word}))

    async def read_after(self, position: Position, prefix: str = "", limit: int = 1000) -> Page:
        """The next events of all streams whose name begins so, in an order that never changes and misses none.

        Positions are drawn before transactions commit, so a reader that remembered the largest would miss a late
        commit. Only transactions older than every one still running are read, in order of transaction, then position:
        nothing can be added before them any more. Within a stream the order is that of its sequence.

        Args:
            position: Where the last page ended; `START` at first.
            prefix: Beginning of the streams' names; all by default.
            limit: Most events to return.
        """
        values = {"xid": str(position.xid), "position": position.position, "limit": limit, **prefix_range(prefix)}
        rows = await self._database.rows(_READ_AFTER, values)
        found = [row for row in rows if row.position is not None]
        if len(found) == limit:
            return Page(self._recorded(found), Position(int(found[-1].xid), found[-1].position))
        settled = Position(int(rows[0].horizon) - 1, _LAST)
        return Page(self._recorded(found), max(position, settled))

    async def verify_stream(self, stream: str) -> Head | None:
        """Check a stream from its bytes: hashes, chain, sequence, form, types, keys, appender.

        Returns:
            Where it ends, to be compared with what its parent committed to; None if it does not exist.

        Raises:
            BrokenStream: the first event that does not hold, and why.
        """
        return verify_rows(stream, await self._database.rows(_VERIFY, {"stream": stream}), self._parse)

    async def _same_or_fenced(self, stream: str, events: Sequence[Event], keys: list[str], expected_seq: int) -> Head:
        """Whether an append that could not be made has been made before."""
        rows = await self._database.rows(_READ_KEYS, {"stream": stream, "keys": keys, "expected": expected_seq})
        standing = self._recorded(rows)
        by_key = {recorded.envelope.key: recorded for recorded in standing}
        head = await self.head(stream)
        found = 0 if head is None else head.seq + 1
        for key, event in zip(keys, events, strict=True):
            why = _why_not(by_key.get(key), event, standing, expected_seq)
            if why:
                raise Fenced(stream, expected=expected_seq, found=found, key=key, why=why)
        return max(by_key[key].head for key in keys)

    def _recorded(self, rows: Iterable[Row[Any]]) -> list[Recorded]:
        recorded: list[Recorded] = []
        for row in rows:
            envelope = open_envelope(row.exact)
            recorded.append(Recorded(envelope, self._parse(envelope.type, envelope.schema, dict(envelope.body))))
        return recorded


def _why_not(found: Recorded | None, event: Event, standing: list[Recorded], expected_seq: int) -> str | None:
    """Why an event of a refused append does not count as appended; None if it does."""
    if found is not None:
        if found.event.type == event.type and canonical_json(found.event.facts()) == canonical_json(event.facts()):
            return None
        return f"the same key stands at #{found.seq} for other facts, by {found.envelope.actor}"
    for other in standing:
        if other.seq == expected_seq:
            return f"{other.envelope.key!r} stands there, by {other.envelope.actor}"
    return "there is no event before it, or not yet"
