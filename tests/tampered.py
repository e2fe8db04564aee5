"""A copy of a run that can be changed by somebody who has all rights over it, and the two who check it.

Changes come in two kinds: of bytes as they lie there, and of events whose hashes and links are then made to fit again.
"""

import copy
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from db.blobs import blob_digest
from db.run_record import Reading
from db.run_rows import StreamRows
from stepwell.audit.bundle import BundleWriter
from stepwell.audit.record import RunRecord
from stepwell.audit.signed import Anchor
from stepwell.audit.standalone import Verifier
from stepwell.audit.verification import verify
from stepwell.events.canonical import canonical_json
from stepwell.events.envelope import GENESIS, hash_of, open_envelope
from stepwell.events.streams import deleted_stream, seal_stream
from tests.audited_run import KEY
from tests.book import MemoryBook


class Stored(NamedTuple):
    """A row of the ledger."""

    stream: str
    seq: int
    key: str
    type: str
    hash: str
    exact: bytes
    is_projected: bool = False


@dataclass
class Copy:
    """A run in the hands of somebody."""

    run: str
    streams: dict[str, list[tuple[str, bytes]]]
    """Hash and stored bytes of each event."""
    blobs: dict[str, bytes]
    withheld: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, book: MemoryBook) -> "Copy":
        streams = {name: list(zip(book.hashes[name], lines, strict=True)) for name, lines in book.exact.items()}
        return cls(book.run, streams, dict(book.blobs))

    def clone(self) -> "Copy":
        return replace(self, streams=copy.deepcopy(self.streams), blobs=dict(self.blobs))

    def anchor(self) -> Anchor:
        """What was kept elsewhere while the run was as it is now."""
        lines = self.streams[seal_stream(self.run)]
        return Anchor(KEY.public, seal_stream(self.run), len(lines) - 1, lines[-1][0])

    def change(self, stream: str, seq: int, how: Callable[[dict[str, Any]], object]) -> None:
        """Changes one event, and makes its own hash fit, but nothing after it."""
        fields = json.loads(self.streams[stream][seq][1])
        how(fields)
        exact = canonical_json(fields)
        self.streams[stream][seq] = (hash_of(exact), exact)

    def forge(self, stream: str, seq: int, **body: Any) -> None:
        """Changes fields of an event's body, and makes the rest of its stream fit."""
        self.change(stream, seq, lambda fields: fields["body"].update(body))
        self.rechain(stream)

    def rechain(self, stream: str, exact: Iterable[bytes] | None = None) -> None:
        """Numbers and links a stream anew, out of these events or those that it has."""
        lines, prev = list(exact or (line for _, line in self.streams[stream])), GENESIS
        self.streams[stream] = []
        for seq, line in enumerate(lines):
            sealed = canonical_json({**json.loads(line), "seq": seq, "prev": prev, "stream": stream})
            prev = hash_of(sealed)
            self.streams[stream].append((prev, sealed))

    def find(self, stream: str, type: str, number: int = 0) -> int:
        """Place of an event of a type."""
        of_type = [seq for seq, (_, exact) in enumerate(self.streams[stream]) if json.loads(exact)["type"] == type]
        return of_type[number]

    def body(self, stream: str, seq: int) -> dict[str, Any]:
        return json.loads(self.streams[stream][seq][1])["body"]

    def put(self, value: object) -> str:
        """Stores a blob."""
        data = canonical_json(value)
        self.blobs[blob_digest(data)] = data
        return blob_digest(data)


Found = set[tuple[str, str, int | None]]
"""Rule, stream and place of what does not hold."""


def by_the_bundle(held: Copy, folder: Path, *, key: str = "", anchors: Iterable[Anchor] = ()) -> Verifier:
    """What the verifier that stands alone says of a copy."""
    with BundleWriter(folder) as writer:
        for name in sorted(held.streams):
            for hash, exact in held.streams[name]:
                writer.add_event(hash, exact)
        for digest, data in held.blobs.items():
            writer.add_blob(digest, data)
        writer.finish(held.run, held.withheld)
    return Verifier(folder, key, [anchor.line() for anchor in anchors]).verify()


def by_the_ledger(held: Copy, anchors: Iterable[Anchor] = ()) -> Found:
    """What `stepwell audit verify` finds in the same rows."""
    results = verify(record_of(held), list(anchors)).results
    return {(result.rule, finding.stream, finding.seq) for result in results for finding in result.findings}


def record_of(held: Copy) -> RunRecord:
    """The record of a copy, as it is read out of a database."""
    reading = Reading(held.run)
    for name, lines in held.streams.items():
        reading.take(StreamRows(name, [_row(name, *line) for line in lines]))
    named = reading.builder.named_blobs()
    for digest in list(named):
        if digest in reading.folders and digest in held.blobs:
            named |= {file: named[digest] for file in json.loads(held.blobs[digest]).values() if file not in named}
    missing = {digest for digest in named if digest not in held.blobs}
    corrupt = {digest for digest in named if digest in held.blobs and blob_digest(held.blobs[digest]) != digest}
    return reading.builder.build(
        named_blobs=named,
        blob_faults={digest: f"blob {digest} is missing or corrupt" for digest in missing | corrupt},
        documents={digest: held.blobs[digest] for digest in reading.documents if digest not in missing | corrupt},
        missing_blobs={digest for digest in missing if deleted_stream(digest) in held.streams} | missing,
    )


def _row(stream: str, hash: str, exact: bytes) -> Any:
    try:
        envelope = open_envelope(exact)
    except ValueError:
        return Stored(stream, 0, "", "", hash, exact)
    return Stored(stream, envelope.seq, envelope.key, envelope.type, hash, exact)
