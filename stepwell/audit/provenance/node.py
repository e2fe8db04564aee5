"""What the graph is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stepwell.audit.provenance.reference import Ref

Figure = str | int | float | bool | None
"""A value that a node tells."""


class EventMark(NamedTuple):
    """An event by which something can be checked."""

    stream: str
    """Its stream."""
    seq: int
    """Its place there."""
    hash: str
    """Its hash, which commits to all before it."""


@dataclass(frozen=True)
class Node:
    """One thing of a run."""

    ref: Ref
    """Its name."""
    title: str
    """What it is, in a line."""
    events: tuple[EventMark, ...]
    """Events that record it, the first one first; empty for what no event of this run records."""
    figures: Mapping[str, Figure] = field(default_factory=dict[str, Figure])
    """What is recorded of it."""
    taint: str = ""
    """Why it is not to be trusted; empty for what is."""


@dataclass(frozen=True)
class Edge:
    """One thing was needed for another."""

    cause: Ref
    """What was there first."""
    effect: Ref
    """What came of it."""
    why: str
    """What makes it so, in words."""
    shown_by: EventMark | None
    """The event that says so; None where two names say it."""
    is_chain: bool = False
    """Whether it leads along a chain of equals (version to version, turn to turn), which a tree does not walk down."""
