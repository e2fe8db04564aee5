"""The tables for reading, as an audit found them."""

from dataclasses import dataclass
from typing import NamedTuple


class RowFault(NamedTuple):
    """A row of a table for reading that is not what its events make it."""

    stream: str
    """A stream that it is built from."""
    what: str
    """What was found, and what was wanted."""


@dataclass(frozen=True, slots=True)
class Projected:
    """The tables for reading, compared with the events that they had taken in."""

    rows: int = 0
    """Rows that were compared."""
    faults: tuple[RowFault, ...] = ()
    """Those that differ."""


NOT_COMPARED = Projected()
"""Of a record that was not read out of a database."""
