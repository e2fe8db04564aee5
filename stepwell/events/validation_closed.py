"""ValidationClosed."""

from typing import Literal

from stepwell.events.base import Event
from stepwell.events.children import Commitment


class ValidationClosed(Event):
    """A validation ended. Last event of its stream."""

    type: Literal["ValidationClosed"] = "ValidationClosed"
    MEASURED = frozenset({"children_heads"})

    passed: list[int]
    """Of each task, how many of its samples passed."""
    graded: list[int]
    """Of each task, how many of its samples have a score."""
    pass_1: float
    """Mean over tasks of passed / graded."""
    pass_k: float
    """Share of tasks with at least one passed sample."""
    k: int
    """Samples a task."""
    children_facts: str
    """Digest over what the groups did."""
    children_heads: Commitment
    """Heads of the prompt streams."""

    def key(self) -> str:
        return "closed"
