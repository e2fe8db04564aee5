"""The rows of a run's streams, in the order of their names: a server-side cursor gives a part at a time."""

from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from db.ledger import prefix_range
from db.recorded import START, Position
from stepwell.events.streams import (
    health_stream,
    history_stream,
    operator_stream,
    quarantine_stream,
    run_stream,
    seal_stream,
    weights_stream,
)

PART = 2000
"""Rows fetched at once."""
NAMES = 500
"""Streams asked for by name at once."""
KINDS = ("validation", "prompt", "engine", "rollout")
"""Kinds of which a run has many streams."""

OWN = (
    run_stream,
    operator_stream,
    quarantine_stream,
    health_stream,
    history_stream,
    weights_stream,
    seal_stream,
)
"""Streams of which a run has one."""

_COLUMNS = (
    "SELECT stream, seq, key, type, hash, exact, (xid, position) <= (CAST(:xid AS xid8), :position) AS is_projected "
    "FROM events"
)
_BY_NAME = text(f"{_COLUMNS} WHERE stream = ANY(:streams) ORDER BY stream, seq")
_BY_PREFIX = text(f"{_COLUMNS} WHERE stream >= :low AND stream < :high ORDER BY stream, seq")


class StreamRows(NamedTuple):
    """A stream as it is stored."""

    name: str
    """Its name."""
    rows: list[Row[Any]]
    """`seq`, `key`, `type`, `hash`, `exact` and `is_projected` of each event, in order of seq."""


async def run_rows(connection: AsyncConnection, run: str, projected: Position = START) -> AsyncIterator[StreamRows]:
    """Every stream of a run but the verdicts that it names; the run's own come first, its rollouts last.

    Args:
        connection: In a transaction whose snapshot does not change.
        run: Its name.
        projected: How far the tables for reading have come.
    """
    own = (stream(run) for stream in OWN)
    async for stream in named_rows(connection, own, projected):
        yield stream
    for kind in KINDS:
        values = prefix_range(f"{kind}/{run}/")
        async for stream in _streams(connection, _BY_PREFIX, values, projected):
            yield stream


async def named_rows(
    connection: AsyncConnection, names: Iterable[str], projected: Position = START
) -> AsyncIterator[StreamRows]:
    """Streams by name, those that exist. Arguments as of `run_rows`."""
    rest = iter(names)
    while part := list(islice(rest, NAMES)):
        async for stream in _streams(connection, _BY_NAME, {"streams": part}, projected):
            yield stream


async def rows_below(connection: AsyncConnection, prefix: str) -> AsyncIterator[StreamRows]:
    """Streams whose names begin so."""
    async for stream in _streams(connection, _BY_PREFIX, prefix_range(prefix), START):
        yield stream


async def _streams(
    connection: AsyncConnection, statement: TextClause, values: Mapping[str, object], projected: Position
) -> AsyncIterator[StreamRows]:
    """The rows of each stream that a query gives."""
    name, rows = "", list[Row[Any]]()
    bounds = {"xid": str(projected.xid), "position": projected.position}
    async with connection.stream(statement, {**values, **bounds}) as result:
        async for part in result.partitions(PART):
            for row in part:
                if row[0] != name:
                    if rows:
                        yield StreamRows(name, rows)
                    name, rows = row[0], []
                rows.append(row)
    if rows:
        yield StreamRows(name, rows)
