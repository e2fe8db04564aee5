"""RolloutRestarted."""

from typing import Literal

from stepwell.events.base import Event


class RolloutRestarted(Event):
    """Re-running the recorded actions gave another work tree: the recorded turns are void, the rollout starts over."""

    type: Literal["RolloutRestarted"] = "RolloutRestarted"
    KIND = "operational"

    epoch: int
    """Number of the epoch that begins, from 1."""
    turn: int
    """Turn after which the trees differed."""
    expected: str
    """Tree digest as recorded."""
    found: str
    """Tree digest as rebuilt."""

    def key(self) -> str:
        return f"restart/{self.epoch}"
