"""Whether the tables for reading hold what the events make them, without changing them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from db.models import Base
from db.projections.folds import changes
from db.projections.projector import storable
from db.projections.tables import PROJECTIONS, PromptRow, RolloutRow, RunRow, StepRow, ValidationRow
from db.recorded import Recorded
from stepwell.audit.projected import Projected, RowFault
from stepwell.events.streams import prompt_stream, rollout_stream, run_stream, validation_stream

Key = tuple[str | int, ...]

_SOURCES: Mapping[type[Base], frozenset[str]] = {
    RunRow: frozenset({"run", "operator", "weights"}),
    StepRow: frozenset({"run", "weights"}),
    ValidationRow: frozenset({"run", "validation"}),
    PromptRow: frozenset({"prompt"}),
    RolloutRow: frozenset({"rollout"}),
}
"""Kinds of streams that each table is built from."""


class ExpectedRows:
    """The rows of one run as its events make them, gathered while these go by."""

    def __init__(self) -> None:
        self._rows: dict[tuple[type[Base], Key], dict[str, Any]] = {}

    def see(self, recorded: Recorded) -> None:
        """Takes in an event that the tables have taken in too; of a stream in their order."""
        for change in changes(recorded):
            row = self._rows.setdefault((change.table, tuple(change.key.values())), {})
            if change.set:
                row.update(change.set)
            for column, amount in change.add.items():
                row[column] = row.get(column, 0) + amount

    async def compare(self, connection: AsyncConnection, run: str, broken: Iterable[str]) -> Projected:
        """Compares with the tables.

        Args:
            connection: In the snapshot that the events were read in.
            run: The run.
            broken: Streams that do not verify: tables that are built from such are left out.
        """
        kinds = {stream.partition("/")[0] for stream in broken}
        faults: list[RowFault] = []
        rows = 0
        for table in (table for table in PROJECTIONS if not _SOURCES[table] & kinds):
            wanted = {key: row for (of, key), row in self._rows.items() if of is table}
            found = await _stored(connection, table, run)
            keys = len(list(table.__table__.primary_key))
            columns = [(each.name, None if each.server_default is None else 0) for each in table.__table__.c][keys:]
            rows += len(wanted)
            for key in sorted(wanted.keys() | found.keys(), key=str):
                what = _difference(columns, wanted.get(key), found.get(key, ())[keys:])
                if what:
                    faults.append(RowFault(_stream_of(table, key), f"table {table.__tablename__}: {what}"))
        return Projected(rows, tuple(faults))


async def _stored(connection: AsyncConnection, table: type[Base], run: str) -> dict[Key, Sequence[Any]]:
    """Rows of a run, columns in the table's order, by their keys, which come first in it."""
    columns = table.__table__.c
    keys = len(list(table.__table__.primary_key))
    rows = (await connection.execute(select(table.__table__).where(columns.run == run))).all()
    return {tuple(row[:keys]): row for row in rows}


def _difference(columns: Sequence[tuple[str, object]], wanted: Mapping[str, Any] | None, found: Sequence[Any]) -> str:
    """The first column that differs, in words; empty if none does.

    Args:
        columns: Name and default of each that is no key.
        wanted: The row's columns as its events make them; None for a row that none makes.
        found: The row's columns as they are stored, without its key; empty for a row that is not.
    """
    if wanted is None:
        return "has a row that no event makes"
    if not found:
        return "lacks the row that its events make"
    for (name, default), value in zip(columns, found, strict=True):
        right = storable(wanted.get(name, default))
        if right != value:
            return f"{name} is {value!r}, its events make it {right!r}"
    return ""


def _stream_of(table: type[Base], key: Key) -> str:
    """A stream that a row is built from."""
    run, *place = key
    if table is RolloutRow:
        scope, prompt, sample = place
        return rollout_stream(str(run), str(scope), int(prompt), int(sample))
    if table is PromptRow:
        scope, prompt = place
        return prompt_stream(str(run), str(scope), int(prompt))
    if table is ValidationRow:
        version, dataset = place
        return validation_stream(str(run), int(version), str(dataset))
    return run_stream(str(run))
