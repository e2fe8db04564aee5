"""What surrounds an event in its stream, the exact bytes that are stored, and the hash that chains them.

The stored form is the canonical JSON of everything but the hash; the hash is SHA-256 under the tag `event` over those
bytes, and the next event of the stream carries it as `prev`. So a stream's last hash commits to all of it, and whoever
has the bytes needs nothing else to check them.

Time is the database's, taken inside the append's transaction, and the previous hash is what stands there at that
moment. A writer that knew neither would need a round trip to ask; so an envelope is first a `Draft`, canonical bytes
with two gaps, which the database fills. `seal` fills them here by the same rule.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from stepwell.events.canonical import NotCanonical, canonical_again, canonical_json, tag_bytes

GENESIS = "0" * 64
"""`prev` of a stream's first event."""

FIELDS = ("actor", "body", "key", "prev", "schema", "seq", "stream", "time", "type")
"""Fields of the stored form, in its order."""

_TYPES: Mapping[str, type] = dict.fromkeys(FIELDS, str) | {"body": dict, "schema": int, "seq": int}
_IN_ORDER = tuple(_TYPES.values())
_WORDS: Mapping[type, str] = {str: "a string", dict: "an object", int: "an integer from 0"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


class BrokenLink(ValueError):
    """Stored bytes that are not what was appended, or not where it was."""


class Envelope(NamedTuple):
    """One event as it stands in its stream."""

    stream: str
    """Name of the stream."""
    seq: int
    """Place in it, from 0."""
    key: str
    """Domain key, unique in the stream."""
    type: str
    """Tag of the event's type."""
    schema: int
    """Version of the type that the body was written in."""
    time: str
    """UTC by the database's clock, ISO 8601 with microseconds and `Z`."""
    actor: str
    """Who appended it, `<kind>:<id>`."""
    body: Mapping[str, Any]
    """The event's fields, in JSON form."""
    prev_hash: str
    """Hash of the event before it; `GENESIS` for the first."""
    hash: str
    """Hash over the exact bytes."""

    def exact_bytes(self) -> bytes:
        """The bytes that are stored and hashed."""
        return canonical_json(
            {
                "actor": self.actor,
                "body": self.body,
                "key": self.key,
                "prev": self.prev_hash,
                "schema": self.schema,
                "seq": self.seq,
                "stream": self.stream,
                "time": self.time,
                "type": self.type,
            }
        )


class _Where(NamedTuple):
    """A place, in words only if they are needed."""

    stream: str
    seq: int

    def __str__(self) -> str:
        return f"{self.stream} #{self.seq}"


class Draft(NamedTuple):
    """Canonical bytes of an envelope without time and previous hash: `head + prev + middle + time + tail`."""

    head: bytes
    middle: bytes
    tail: bytes

    def fill(self, *, prev_hash: str, time: str) -> bytes:
        """The exact bytes."""
        return b"".join((self.head, prev_hash.encode(), self.middle, time.encode(), self.tail))


def draft(*, stream: str, seq: int, key: str, type: str, schema: int, actor: str, body: Mapping[str, Any]) -> Draft:
    """Everything about an event that its writer knows.

    Raises:
        NotCanonical: the body has no canonical form (NaN, a key that is no string).
    """
    text = canonical_json
    return Draft(
        b'{"actor":%b,"body":%b,"key":%b,"prev":"' % (text(actor), text(body), text(key)),
        b'","schema":%d,"seq":%d,"stream":%b,"time":"' % (schema, seq, text(stream)),
        b'","type":%b}' % text(type),
    )


_EVENT = hashlib.sha256(tag_bytes("event"))


def hash_of(exact: bytes) -> str:
    """Hash of an event's exact bytes."""
    digest = _EVENT.copy()
    digest.update(len(exact).to_bytes(8, "big") + exact)
    return digest.hexdigest()


def seal(
    *,
    stream: str,
    seq: int,
    key: str,
    type: str,
    schema: int,
    actor: str,
    body: Mapping[str, Any],
    prev_hash: str,
    time: str,
) -> Envelope:
    """The envelope of an event at its place, with its hash."""
    exact = draft(stream=stream, seq=seq, key=key, type=type, schema=schema, actor=actor, body=body).fill(
        prev_hash=prev_hash, time=time
    )
    return Envelope(stream, seq, key, type, schema, time, actor, body, prev_hash, hash_of(exact))


def open_envelope(exact: bytes) -> Envelope:
    """The envelope that stored bytes are.

    Raises:
        BrokenLink: they are not the canonical form of an envelope.
    """
    return _envelope(_fields(exact), hash_of(exact))


def _fields(exact: bytes) -> dict[str, Any]:
    """The fields that stored bytes hold, each of its type. Raises as `open_envelope`."""
    try:
        value = json.loads(str(exact, "utf-8"))
    except ValueError as error:
        raise BrokenLink(f"stored bytes are no JSON: {error}") from error
    if not isinstance(value, dict):
        raise BrokenLink(f"stored bytes are a JSON {type(value).__name__}, an envelope is an object")
    fields = cast(dict[str, Any], value)
    is_in_order = tuple(fields) == FIELDS and tuple(map(type, fields.values())) == _IN_ORDER
    if is_in_order and fields["seq"] >= 0 <= fields["schema"]:
        return fields  # as all are that were appended; the rest says what is wrong
    if fields.keys() != _TYPES.keys():
        raise BrokenLink(f"the envelope has the fields {sorted(fields)}, wanted {list(FIELDS)}")
    for name, wanted in _TYPES.items():
        if type(fields[name]) is not wanted:
            raise BrokenLink(f"the envelope's {name} is {fields[name]!r}, wanted {_WORDS[wanted]}")
    for name in ("seq", "schema"):
        if fields[name] < 0:
            raise BrokenLink(f"the envelope's {name} is {fields[name]!r}, wanted an integer from 0")
    return fields


def _envelope(fields: Mapping[str, Any], hash: str) -> Envelope:
    return Envelope(
        fields["stream"],
        fields["seq"],
        fields["key"],
        fields["type"],
        fields["schema"],
        fields["time"],
        fields["actor"],
        fields["body"],
        fields["prev"],
        hash,
    )


def verify_link(exact: bytes, *, stream: str, seq: int, prev_hash: str, hash: str) -> Envelope:
    """Check stored bytes against the place they are found at and the hash kept beside them.

    Args:
        exact: The stored bytes.
        stream: Stream that they are stored under.
        seq: Place that they are stored at.
        prev_hash: Hash of the event before them, `GENESIS` at 0.
        hash: Hash stored beside them.

    Returns:
        The envelope.

    Raises:
        BrokenLink: says what does not hold: hash, form, place, time, or the link to the event before.
    """
    computed = hash_of(exact)
    where = _Where(stream, seq)
    if computed != hash:
        raise BrokenLink(f"{where}: the bytes hash to {computed}, the ledger says {hash}")
    fields = _fields(exact)
    try:
        canonical = canonical_again(fields)
    except NotCanonical as error:
        raise BrokenLink(f"{where}: {error}") from error
    if canonical != exact:
        raise BrokenLink(f"{where}: the bytes are not in canonical form")
    envelope = _envelope(fields, computed)
    if envelope.stream != stream or envelope.seq != seq:
        raise BrokenLink(f"{where}: the bytes belong to {envelope.stream} #{envelope.seq}")
    if not _TIME.fullmatch(envelope.time):
        raise BrokenLink(f"{where}: time {envelope.time!r} is not in the form 2026-01-31T23:59:59.000000Z")
    if envelope.prev_hash != prev_hash:
        raise BrokenLink(f"{where}: names {envelope.prev_hash!r} as the event before it, which is {prev_hash}")
    return envelope
