"""RolloutTainted."""

from typing import Literal

from stepwell.events.base import Event


class RolloutTainted(Event):
    """Somebody found that a rollout is not to be trusted: neither are the versions that were trained on it, nor what
    they did. Which those are follows from the ledger, and grows with the run. Stream `quarantine/<run>`.
    """

    type: Literal["RolloutTainted"] = "RolloutTainted"
    KIND = "operational"

    rollout: str
    """Name of its stream."""
    number: int
    """How often it was marked before: what was cleared can be marked again."""
    who: str
    """User and host of whoever marked it."""
    reason: str
    """As given."""

    def key(self) -> str:
        return f"taint/{self.number}/{self.rollout}"
