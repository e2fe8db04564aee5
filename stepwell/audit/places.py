"""What a record keeps of an event, a turn, a blob's name and a break: each with its place."""

from dataclasses import dataclass
from typing import NamedTuple

from stepwell.events.base import Event


class Placed(NamedTuple):
    """An event and where it stands."""

    seq: int
    """Its place in its stream."""
    event: Event
    """What happened."""


class TurnMark(NamedTuple):
    """What the rules need of a turn."""

    seq: int
    """Its place in the rollout's stream."""
    epoch: int
    """How often the rollout had been started over."""
    turn: int
    """Its number in the epoch."""
    version: int
    """Weight version of its tokens."""
    prompt_tokens: int
    """How many were before them."""
    generated_tokens: int
    """How many."""
    engine: str
    """Who generated them."""


class Naming(NamedTuple):
    """An event that names a blob."""

    stream: str
    """Its stream."""
    seq: int
    """Its place there."""


@dataclass(frozen=True, slots=True)
class ChainFault:
    """Where a stream stops to verify."""

    stream: str
    """Its name."""
    seq: int
    """First event that does not hold."""
    why: str
    """In words."""
