"""What a ledger gives back."""

from collections.abc import Callable
from typing import Any, NamedTuple

from stepwell.events.base import Event
from stepwell.events.envelope import Envelope

Parse = Callable[[str, int, dict[str, Any]], Event]
"""(type, schema, body) to an event."""


class Head(NamedTuple):
    """Where a stream ends."""

    seq: int
    """Sequence number of its last event."""
    hash: str
    """Hash of that event: commits to the whole stream."""


class Recorded(NamedTuple):
    """An event as it stands in its stream."""

    envelope: Envelope
    """Stream, place, time, actor, hashes."""
    event: Event
    """What happened."""

    @property
    def stream(self) -> str:
        """Its stream."""
        return self.envelope.stream

    @property
    def seq(self) -> int:
        """Its place there."""
        return self.envelope.seq

    @property
    def head(self) -> Head:
        """Where the stream ends with it."""
        return Head(self.envelope.seq, self.envelope.hash)


class Position(NamedTuple):
    """How far a reader of all streams has come. Compares in reading order."""

    xid: int
    """Transaction of the last event read."""
    position: int
    """Its position."""


START = Position(0, 0)
"""Before the first event."""


class Page(NamedTuple):
    """What a reader of all streams gets at once."""

    events: list[Recorded]
    """In order; empty when there is nothing new."""
    position: Position
    """Where the next page begins."""
