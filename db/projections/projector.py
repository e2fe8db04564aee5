"""Follows the ledger and keeps the tables for reading, each event exactly once.

A portion's rows and the position after it are written in one transaction, which holds only if the position is still
the one that the portion was read from: so two projectors, or one beside a rebuild, cannot apply an event twice.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from sqlalchemy import text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from db.database import Database, clear_errors
from db.ledger import Ledger
from db.models import Base
from db.projections.folds import Change, changes
from db.projections.tables import PROJECTIONS
from db.recorded import Position

_PORTION = 2_000
"""Events applied in one transaction: some 5 MB of events, a few hundred milliseconds."""

_POSITION = text("SELECT xid, position FROM projector_position")
_ADVANCE = text(
    "UPDATE projector_position SET xid = CAST(:xid AS xid8), position = :position "
    "WHERE xid = CAST(:from_xid AS xid8) AND position = :from_position"
)
_RESTART = text("UPDATE projector_position SET xid = '0', position = 0")


class Projector:
    """Applies the ledger's events to the tables for reading.

    Args:
        database: Connections of a role that may write those tables.
        portion: Most events applied in one transaction.
    """

    def __init__(self, database: Database, *, portion: int = _PORTION) -> None:
        self._database = database
        self._ledger = Ledger(database)
        self._portion = portion

    async def catch_up(self) -> int:
        """Apply every event that is settled; how many there were.

        Raises:
            DatabaseUnavailable: no connection, or a role without the rights.
            UnknownEvent: an event of a newer Stepwell.
        """
        applied = 0
        while count := await self._apply_portion():
            applied += count
        return applied

    async def follow(self, *, interval_s: float) -> None:
        """Keep the tables at most about `interval_s` seconds behind, until cancelled. Raises as `catch_up`."""
        while True:
            await self.catch_up()
            await asyncio.sleep(interval_s)

    async def rebuild(self) -> int:
        """Empty the tables and apply the whole ledger again; how many events that were.

        While it runs, readers see the tables fill. If it is interrupted, the next projector goes on from there.
        """
        names = ", ".join(row.__tablename__ for row in PROJECTIONS)
        with clear_errors(self._database.url):
            async with self._database.transaction() as connection:
                await connection.execute(_RESTART)
                await connection.execute(text(f"TRUNCATE {names}"))
        return await self.catch_up()

    async def _apply_portion(self) -> int:
        (row,) = await self._database.rows(_POSITION, {})
        position = Position(int(row.xid), row.position)
        page = await self._ledger.read_after(position, limit=self._portion)
        if not page.events:
            return 0
        values = {
            "xid": str(page.position.xid),
            "position": page.position.position,
            "from_xid": str(position.xid),
            "from_position": position.position,
        }
        with clear_errors(self._database.url):
            async with self._database.transaction() as connection:
                advanced = await connection.execute(_ADVANCE, values)
                if advanced.rowcount == 1:
                    await _write(connection, merge(change for event in page.events for change in changes(event)))
        return len(page.events)


def merge(every: Iterable[Change]) -> list[Change]:
    """One change a row: of the columns set the last value, of those added to the sum."""
    rows: dict[tuple[type[Base], tuple[str | int, ...]], Change] = {}
    for change in every:
        name = (change.table, tuple(change.key.values()))
        before = rows.get(name)
        if before is not None:
            added = {
                column: before.add.get(column, 0) + change.add.get(column, 0) for column in {**before.add, **change.add}
            }
            change = Change(change.table, change.key, {**before.set, **change.set}, added)
        rows[name] = change
    return list(rows.values())


async def _write(connection: AsyncConnection, merged: list[Change]) -> None:
    """Insert the rows or change them; those that change the same columns in one statement."""
    alike: dict[tuple[type[Base], frozenset[str], frozenset[str]], list[dict[str, Any]]] = {}
    for change in merged:
        form = (change.table, frozenset(change.set), frozenset(change.add))
        row = {**change.key, **change.set, **change.add}
        alike.setdefault(form, []).append({column: storable(value) for column, value in row.items()})
    for (table, set_columns, added), rows in alike.items():
        statement = insert(table)
        present = table.__table__.c
        statement = statement.on_conflict_do_update(
            index_elements=[column.name for column in table.__table__.primary_key],
            set_={column: statement.excluded[column] for column in set_columns}
            | {column: present[column] + statement.excluded[column] for column in added},
        )
        await connection.execute(statement, rows)


def storable(value: object) -> object:
    """Postgres' text has no NUL, which a cause quoted from a tool may hold: shown as the replacement character."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
