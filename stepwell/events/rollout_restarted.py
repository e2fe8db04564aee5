"""RolloutRestarted."""

from typing import Literal

from stepwell.events.base import Event


class RolloutRestarted(Event):
    """Re-running the recorded actions did something else: the recorded turns are void, the rollout starts over."""

    type: Literal["RolloutRestarted"] = "RolloutRestarted"
    KIND = "operational"

    epoch: int
    """Number of the epoch that begins, from 1."""
    turn: int
    """Turn after which something differed."""
    expected: str
    """Digest as recorded: of the work tree, or after a word `shell`, `observation` or `prompt` of that. `another call`
    where a harness of its own ended before."""
    found: str
    """Digest of the same as rebuilt."""

    def key(self) -> str:
        return f"restart/{self.epoch}"
