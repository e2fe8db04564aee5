"""RolloutGraded."""

from typing import Literal

from stepwell.events.base import Event


class RolloutGraded(Event):
    """The rollout's tree has a verdict."""

    type: Literal["RolloutGraded"] = "RolloutGraded"
    MEASURED = frozenset({"reused", "verdict_head"})

    verdict_key: str
    """Names the verdict: stream `verdict/<key>`."""
    score: float
    """1.0 if every hidden test did as expected, else 0.0."""
    timed_out: bool
    """Whether the hidden tests were cut off by their deadline."""
    verdict_head: str
    """Hash of the verdict's event."""
    reused: bool
    """Whether the tree had been graded before."""

    def key(self) -> str:
        return "graded"
