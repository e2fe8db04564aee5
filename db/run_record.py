"""Reads a run for an audit: every stream from its bytes, in one snapshot, and every blob that it names.

Streams come through a server-side cursor, so a run of some hundred thousand events fits: what is kept of each is what
the rules need.
"""

import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from db.blobs import BlobStore
from db.database import Database, clear_errors
from db.errors import BlobCorrupt, BlobMissing, BrokenStream
from db.ledger import prefix_range
from db.verify import verify_rows
from stepwell import events as event_types
from stepwell.audit.blob_names import documents_of, folders_of
from stepwell.audit.record import ChainFault, Naming, RecordBuilder, RunRecord
from stepwell.events.base import Event
from stepwell.events.streams import (
    health_stream,
    history_stream,
    operator_stream,
    quarantine_stream,
    run_stream,
    verdict_stream,
    weights_stream,
)

BATCH = 500
"""Verdicts, or blobs, asked for at once."""

_FOLDER: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
_COLUMNS = "SELECT stream, seq, key, type, hash, exact FROM events"
_BY_NAME = text(f"{_COLUMNS} WHERE stream = ANY(:streams) ORDER BY stream, seq")
_BY_PREFIX = text(f"{_COLUMNS} WHERE stream >= :low AND stream < :high ORDER BY stream, seq")


class _References:
    """Blobs whose contents are needed, gathered while streams go by."""

    def __init__(self) -> None:
        self.documents: set[str] = set()
        self.folders: set[str] = set()

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            self.documents.update(documents_of(event))
            self.folders.update(folders_of(event))


async def read_run(database: Database, blobs: BlobStore, run: str) -> RunRecord | None:
    """A run's record, with the outcome of hashing each of its events and blobs; None for a run that does not exist.

    Raises:
        DatabaseUnavailable, BlobStoreUnavailable: no answer.
    """
    builder, references = RecordBuilder(run), _References()
    with clear_errors(database.url):
        snapshot = database.engine.execution_options(isolation_level="REPEATABLE READ")
        async with snapshot.begin() as connection:
            of_run = (run_stream, operator_stream, quarantine_stream, health_stream, history_stream, weights_stream)
            names = [stream(run) for stream in of_run]
            await _take(builder, references, connection, _BY_NAME, {"streams": names})
            if not builder.has(run_stream(run)):
                return None
            for kind in ("validation", "prompt", "engine", "rollout"):
                await _take(builder, references, connection, _BY_PREFIX, prefix_range(f"{kind}/{run}/"))
            for keys in _batches(sorted(builder.verdict_keys())):
                values = {"streams": [verdict_stream(key) for key in keys]}
                await _take(builder, references, connection, _BY_NAME, values)
    named = builder.named_blobs()
    kept, faults = await _check_blobs(blobs, named, references.documents | references.folders)
    files = _files_of(kept, references.folders, named, faults)
    faults.update(await _check_files(blobs, [digest for digest in files if digest not in named]))
    return builder.build(
        named_blobs={**files, **named},
        blob_faults=faults,
        documents={digest: data for digest, data in kept.items() if digest in references.documents},
    )


async def _take(
    builder: RecordBuilder,
    references: _References,
    connection: AsyncConnection,
    statement: TextClause,
    values: Mapping[str, object],
) -> None:
    """Verifies the streams of a query and hands them on."""
    async for name, rows in _streams(connection, statement, values):
        events: list[Event] = []
        hashes: list[str] = []
        fault: ChainFault | None = None

        def parse(type: str, schema: int, body: dict[str, Any], events: list[Event] = events) -> Event:
            event = event_types.parse(type, schema, body)
            events.append(event)
            return event

        try:
            verify_rows(name, rows, parse)
            hashes = [row.hash for row in rows]
        except BrokenStream as broken:
            fault = ChainFault(name, broken.seq, broken.why)
            hashes = [row.hash for row in rows[: broken.seq]]
        standing = events[: len(hashes)]
        references.take(standing)
        builder.add(name, standing, hashes, fault)


async def _streams(
    connection: AsyncConnection, statement: TextClause, values: Mapping[str, object]
) -> AsyncIterator[tuple[str, list[Row[Any]]]]:
    """The rows of each stream that a query gives."""
    name, rows = "", list[Row[Any]]()
    async with connection.stream(statement, values) as result:
        async for row in result:
            if row.stream != name and rows:
                yield name, rows
                rows = []
            name = row.stream
            rows.append(row)
    if rows:
        yield name, rows


async def _check_blobs(
    blobs: BlobStore, named: Mapping[str, Naming], wanted: set[str]
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Hashes every blob; returns the bytes of those that are wanted, and what is wrong with which."""
    kept: dict[str, bytes] = {}
    faults: dict[str, str] = {}
    for digests in _batches(list(named)):
        try:
            found = await blobs.get_many(digests)
        except (BlobMissing, BlobCorrupt, ValueError):
            found = await _one_by_one(blobs, digests, faults)
        kept.update((digest, data) for digest, data in found.items() if digest in wanted)
    return kept, faults


async def _one_by_one(blobs: BlobStore, digests: list[str], faults: dict[str, str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for digest in digests:
        try:
            found[digest] = await blobs.get(digest)
        except (BlobMissing, BlobCorrupt, ValueError) as error:
            faults[digest] = str(error)
    return found


def _files_of(
    kept: Mapping[str, bytes], folders: set[str], named: Mapping[str, Naming], faults: dict[str, str]
) -> dict[str, Naming]:
    """The files that stored folders list, each under the event that names its folder."""
    files: dict[str, Naming] = {}
    for folder in sorted(folders & kept.keys()):
        try:
            listed = _FOLDER.validate_json(kept[folder])
        except ValidationError as error:
            faults[folder] = f"blob {folder} lists no files of a folder: {error.errors()[0]['msg']}"
            continue
        for digest in listed.values():
            files.setdefault(digest, named[folder])
    return files


async def _check_files(blobs: BlobStore, digests: list[str]) -> dict[str, str]:
    """Hashes blobs of any size, none of them in memory."""
    faults: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="stepwell-audit-") as folder:
        for digest in digests:
            try:
                await blobs.get_to_file(digest, Path(folder) / "blob")
            except (BlobMissing, BlobCorrupt, ValueError) as error:
                faults[digest] = str(error)
    return faults


def _batches(items: list[str]) -> Iterable[list[str]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
