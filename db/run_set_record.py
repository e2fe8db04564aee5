"""Reads a run set of trials for an audit: every stream from its bytes, in one snapshot, and every blob that it names,
the files of submitted models too."""

from collections.abc import Mapping

from pydantic import ValidationError

from db.blobs import BlobStore
from db.checked_blobs import Checked
from db.database import Database, clear_errors
from db.run_record import Reading, check_blobs
from db.run_rows import named_rows, rows_below
from stepwell.audit.record import Naming, RunRecord
from stepwell.events.streams import deleted_stream, override_stream, run_set_stream, trial_stream
from stepwell.ptb.trials.manifest import read_manifest


async def read_run_set(database: Database, blobs: BlobStore, run_set: str) -> RunRecord | None:
    """A run set's record, with the outcome of hashing each of its events and blobs; None for one that does not exist.

    Args:
        database: Connections.
        blobs: The blobs.
        run_set: Its name.

    Raises:
        DatabaseUnavailable, BlobStoreUnavailable: no answer.
    """
    reading = Reading(run_set)
    builder = reading.builder
    with clear_errors(database.url):
        snapshot = database.engine.execution_options(isolation_level="REPEATABLE READ")
        async with snapshot.begin() as connection:
            async for stream in named_rows(connection, [run_set_stream(run_set)]):
                reading.take(stream)
            if not builder.has(run_set_stream(run_set)):
                return None
            for prefix in (trial_stream(run_set, ""), override_stream(run_set, "")):
                async for stream in rows_below(connection, prefix):
                    reading.take(stream)
    named = builder.named_blobs()
    checked = await check_blobs(blobs, list(named), reading.documents)
    files = _files_of_models(reading, checked, named)
    of_files = await check_blobs(blobs, [digest for digest in files if digest not in named])
    missing = checked.missing | of_files.missing
    with clear_errors(database.url):
        async with database.transaction() as connection:
            async for stream in named_rows(connection, map(deleted_stream, sorted(missing))):
                reading.take(stream)
    return builder.build(
        named_blobs={**files, **named},
        blob_faults={**checked.faults, **of_files.faults},
        documents=checked.kept,
        missing_blobs=missing,
    )


def _files_of_models(reading: Reading, checked: Checked, named: Mapping[str, Naming]) -> dict[str, Naming]:
    """The files that lists of submitted models name, each under the event that names its list. A list that cannot be
    read names none, and a rule says so."""
    files: dict[str, Naming] = {}
    for model in sorted(reading.models & checked.kept.keys()):
        try:
            entries = read_manifest(checked.kept[model])
        except ValidationError:
            continue
        for entry in entries:
            files.setdefault(entry.content, named[model])
    return files
