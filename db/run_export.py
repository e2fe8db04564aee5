"""Writes a run to a bundle: what stands in the ledger, as it stands there, and the blobs that it names."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from pydantic import TypeAdapter, ValidationError

from db.blobs import SMALL_BYTES, BlobStore
from db.database import Database, clear_errors
from db.errors import BlobCorrupt, BlobMissing
from db.named_blobs import NamedBlobs
from db.run_rows import StreamRows, named_rows, run_rows
from stepwell.audit.bundle import BundleWriter
from stepwell.events.streams import deleted_stream, verdict_stream

BATCH = 500
"""Blobs asked for at once."""

_FOLDER: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])


class NotWithheld(ValueError):
    """A blob that cannot be left out of a bundle."""


@dataclass
class Exported:
    """What a bundle holds."""

    streams: int = 0
    """Streams of the run, and the verdicts that it names."""
    events: int = 0
    """Events in them."""
    blobs: int = 0
    """Blobs in it."""
    withheld: list[str] = field(default_factory=list[str])
    """Blobs that were left out, as was asked."""
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """Blobs that the run names and the store has not, with what is wrong."""


async def export_run(
    database: Database, blobs: BlobStore, run: str, writer: BundleWriter, *, without: Collection[str] = ()
) -> Exported | None:
    """Writes the whole run, as of one moment.

    Args:
        database: Connections.
        blobs: The blobs.
        run: Name of the run.
        writer: Takes it.
        without: Blobs to leave out. The events that name them stay, and so does what they commit to.

    Returns:
        What was written; None for a run that does not exist, of which nothing is.

    Raises:
        NotWithheld: the run does not name such a blob, or nothing could be checked without it.
        UnknownEvent: an event of a newer Stepwell.
        DatabaseUnavailable, BlobStoreUnavailable: no answer.
        OSError: the bundle cannot be written.
    """
    exported, names = Exported(), NamedBlobs()

    def take(stream: StreamRows) -> None:
        exported.streams += 1
        exported.events += len(stream.rows)
        for row in stream.rows:
            names.see(row.exact)
            writer.add_event(row.hash, row.exact)

    with clear_errors(database.url):
        snapshot = database.engine.execution_options(isolation_level="REPEATABLE READ")
        async with snapshot.begin() as connection:
            async for stream in run_rows(connection, run):
                take(stream)
            if exported.streams == 0:
                return None
            async for stream in named_rows(connection, map(verdict_stream, sorted(names.verdicts))):
                take(stream)
    _refuse(without, names)
    exported.withheld = sorted(without)
    await _put(blobs, [digest for digest in names.blobs if digest not in without], writer, exported)
    files = _files(names.folders, writer)
    await _put(blobs, [digest for digest in files if digest not in names.blobs], writer, exported)
    with clear_errors(database.url):
        async with database.transaction() as connection:
            async for stream in named_rows(connection, map(deleted_stream, sorted(exported.missing))):
                take(stream)
    writer.finish(run, dict.fromkeys(without, "left out when it was exported"))
    return exported


def _refuse(without: Collection[str], names: NamedBlobs) -> None:
    for digest in without:
        if digest not in names.blobs:
            raise NotWithheld(f"no event of the run names the blob {digest!r}")
        if digest in names.documents | names.folders:
            raise NotWithheld(f"blob {digest} says what belongs together: nothing could be checked without it")


async def _put(blobs: BlobStore, digests: list[str], writer: BundleWriter, exported: Exported) -> None:
    for part in _batches(digests):
        sizes = await blobs.sizes(part)
        small = [digest for digest in part if sizes.get(digest, SMALL_BYTES) < SMALL_BYTES]
        checked = await blobs.check(small, keep=small)
        for digest, data in checked.kept.items():
            writer.add_blob(digest, data)
        exported.blobs += len(checked.kept)
        exported.missing.update(checked.faults)
        for digest in part:
            if digest in small:
                continue
            try:
                await blobs.get_to_file(digest, writer.blob_path(digest))
                exported.blobs += 1
            except (BlobMissing, BlobCorrupt, ValueError) as error:
                exported.missing[digest] = str(error)


def _files(folders: Iterable[str], writer: BundleWriter) -> dict[str, None]:
    """The files that stored folders list; a folder that is not there, or lists none, is found by whoever checks."""
    files: dict[str, None] = {}
    for folder in sorted(folders):
        path = writer.blob_path(folder)
        try:
            files.update(dict.fromkeys(_FOLDER.validate_json(path.read_bytes() if path.exists() else b"{}").values()))
        except ValidationError:
            continue
    return files


def _batches(items: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
