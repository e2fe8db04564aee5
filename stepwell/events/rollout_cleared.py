"""RolloutCleared."""

from typing import Literal

from stepwell.events.base import Event


class RolloutCleared(Event):
    """A mark was taken back: the rollout is to be trusted after all. Stream `quarantine/<run>`."""

    type: Literal["RolloutCleared"] = "RolloutCleared"
    KIND = "operational"

    rollout: str
    """Name of its stream."""
    number: int
    """Which of its marks, from 0."""
    who: str
    """User and host of whoever took it back."""
    reason: str
    """As given."""

    def key(self) -> str:
        return f"clear/{self.number}/{self.rollout}"
