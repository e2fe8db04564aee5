"""Reads a run for an audit: every stream from its bytes, in one snapshot, and every blob that it names.

Streams come through a server-side cursor, so a run of some hundred thousand events fits: what is kept of each is what
the rules need.
"""

import gc
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from db.blobs import BlobStore
from db.checked_blobs import Checked
from db.database import Database, clear_errors
from db.errors import BrokenStream
from db.projections.compare import ExpectedRows
from db.recorded import START, Position
from db.run_rows import StreamRows, named_rows, rows_below, run_rows
from db.verify import verified
from stepwell import events as event_types
from stepwell.audit.blob_names import documents_of, folders_of, models_of, secrets_of, tasks_of
from stepwell.audit.record import ChainFault, Naming, RecordBuilder, RunRecord
from stepwell.events.base import Event
from stepwell.events.streams import deleted_stream, engine_stream, run_stream, verdict_stream, weights_stream

BATCH = 500
"""Blobs asked for at once."""

_FOLDER: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
_POSITION = text("SELECT xid, position FROM projector_position")
_NAME_PAYLOADS = ("rollout/", "verdict/")
"""Streams whose events name only bytes that no rule reads."""
_SNAPSHOT = "REPEATABLE READ"


Add = Callable[
    [str, Sequence[Event], Sequence[str], ChainFault | None, Sequence[Mapping[str, Any]], Sequence[str]], None
]
"""Takes in a stream, as `RecordBuilder.add` does."""


class Reading:
    """What is gathered while a run's streams go by."""

    def __init__(self, run: str) -> None:
        self.builder = RecordBuilder(run)
        self.expected = ExpectedRows()
        self.broken: set[str] = set()
        self.documents: set[str] = set()
        """Blobs whose contents the rules read."""
        self.folders: set[str] = set()
        """Blobs that list files."""
        self.tasks: set[str] = set()
        """Blobs that are tasks, which may name another."""
        self.models: set[str] = set()
        """Blobs that list the files of a trial's submitted model."""

    def take(self, stream: StreamRows) -> None:
        """Verifies a stream and hands it on, up to its first event that does not hold."""
        self._take(stream, self.builder.add, is_own=True)

    def take_ancestor(self, stream: StreamRows) -> None:
        """The same of a stream of another run that this one goes on from."""
        self._take(stream, self.builder.add_ancestor, is_own=False)

    def _take(self, stream: StreamRows, add: Add, *, is_own: bool) -> None:
        name, rows = stream
        events: list[Event] = []
        bodies: list[Mapping[str, Any]] = []
        hashes: list[str] = []
        times: list[str] = []
        fault: ChainFault | None = None
        try:
            for row, recorded in zip(rows, verified(name, rows, event_types.parse), strict=False):
                envelope, event = recorded.envelope, recorded.event
                events.append(event)
                hashes.append(envelope.hash)
                times.append(envelope.time)
                bodies.append(envelope.body if envelope.schema == event.SCHEMA else {})
                if is_own and not name.startswith(_NAME_PAYLOADS):
                    self.documents.update(documents_of(event))
                    self.folders.update(folders_of(event))
                    self.tasks.update(tasks_of(event))
                    self.models.update(models_of(event))
                if row.is_projected:
                    self.expected.see(recorded)
        except BrokenStream as broken:
            fault = ChainFault(name, broken.seq, broken.why)
            self.broken.add(name)
        add(name, events, hashes, fault, bodies, times)


async def read_run(database: Database, blobs: BlobStore, run: str, *, payloads: bool = True) -> RunRecord | None:
    """A run's record, with the outcome of hashing each of its events and blobs; None for a run that does not exist.

    Args:
        database: Connections.
        blobs: The blobs.
        run: Name of the run.
        payloads: Whether blobs are hashed whose contents no rule reads.

    Raises:
        DatabaseUnavailable, BlobStoreUnavailable: no answer.
    """
    reading = Reading(run)
    builder = reading.builder
    with _uncollected(), clear_errors(database.url):
        async with database.engine.execution_options(isolation_level=_SNAPSHOT).begin() as connection:
            position = (await connection.execute(_POSITION)).first()
            projected = START if position is None else Position(int(position.xid), position.position)
            async for stream in run_rows(connection, run, projected):
                reading.take(stream)
            if not builder.has(run_stream(run)):
                return None
            async for stream in named_rows(connection, map(verdict_stream, sorted(builder.verdict_keys()))):
                reading.take(stream)
            await _take_ancestors(reading, connection, run)
            tables = await reading.expected.compare(connection, run, reading.broken)
    named = builder.named_blobs()
    wanted = reading.documents | reading.folders
    secrets: dict[str, str] = {}
    first = list(named) if payloads else sorted(wanted)
    checked = await check_blobs(blobs, first, wanted, reading.tasks if payloads else (), secrets)
    files = _files_of(checked, reading.folders, named)
    files.update((digest, named[task]) for digest, task in secrets.items())
    rest = [digest for digest in files if digest not in named] if payloads else []
    of_files = await check_blobs(blobs, rest)
    missing = checked.missing | of_files.missing
    with clear_errors(database.url):
        async with database.transaction() as connection:
            async for stream in named_rows(connection, map(deleted_stream, sorted(missing))):
                reading.take(stream)
    return builder.build(
        named_blobs={**files, **named},
        blob_faults={**checked.faults, **of_files.faults},
        documents={digest: data for digest, data in checked.kept.items() if digest in reading.documents},
        missing_blobs=missing,
        projected=tables,
    )


async def _take_ancestors(reading: Reading, connection: AsyncConnection, run: str) -> None:
    """What a fork goes on from: how its ancestors made their versions, and the groups that it took over."""
    builder = reading.builder
    while (fork := builder.fork_of(run)) is not None:
        run = fork.parent
        groups = [child.stream for child in fork.reused]
        async for stream in named_rows(connection, [run_stream(run), weights_stream(run), *groups]):
            reading.take_ancestor(stream)
        async for stream in rows_below(connection, engine_stream(run, "")):
            reading.take_ancestor(stream)
        async for stream in named_rows(connection, builder.children_of(groups)):
            reading.take_ancestor(stream)


@contextmanager
def _uncollected() -> Generator[None]:
    """Keeps the garbage collector away: what is read stays, and it would look through all of it again and again, which
    took a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


async def check_blobs(
    blobs: BlobStore,
    digests: Iterable[str],
    wanted: Collection[str] = (),
    tasks: Collection[str] = (),
    secrets: dict[str, str] | None = None,
) -> Checked:
    """Hashes every blob; keeps the bytes of those that are wanted.

    Args:
        blobs: The store.
        digests: Which.
        wanted: Of them, those whose bytes are kept.
        tasks: Of them, those that are tasks.
        secrets: Takes the blobs that tasks name, each with a task that names it.

    Raises:
        DatabaseUnavailable, BlobStoreUnavailable: no answer.
    """
    every = Checked({}, set(), {})
    for part in _batches(digests):
        of_part = {digest for digest in part if digest in wanted or digest in tasks}
        checked = await blobs.check(part, keep=of_part)
        every.faults.update(checked.faults)
        every.missing.update(checked.missing)
        for digest, data in checked.kept.items():
            if digest in wanted:
                every.kept[digest] = data
            named = secrets_of(data) if secrets is not None and digest in tasks else None
            if secrets is not None and named is not None:  # the task itself is not kept: there may be thousands
                secrets.setdefault(named, digest)
    return every


def _files_of(checked: Checked, folders: set[str], named: Mapping[str, Naming]) -> dict[str, Naming]:
    """The files that stored folders list, each under the event that names its folder."""
    files: dict[str, Naming] = {}
    for folder in sorted(folders & checked.kept.keys()):
        try:
            listed = _FOLDER.validate_json(checked.kept[folder])
        except ValidationError as error:
            checked.faults[folder] = f"blob {folder} lists no files of a folder: {error.errors()[0]['msg']}"
            continue
        for digest in listed.values():
            files.setdefault(digest, named[folder])
    return files


def _batches(items: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
