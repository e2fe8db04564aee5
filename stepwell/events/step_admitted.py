"""StepAdmitted."""

from typing import Literal

from stepwell.events.base import Event
from stepwell.events.children import Commitment


class StepAdmitted(Event):
    """The step's batch was fixed: who is in it, with which advantage, packed how."""

    type: Literal["StepAdmitted"] = "StepAdmitted"
    MEASURED = frozenset({"group_heads"})

    step: int
    """Training step."""
    manifest: str
    """Blob: the batch manifest."""
    group_facts: str
    """Digest over what the step's groups did."""
    group_heads: Commitment
    """Heads of the step's prompt streams, which commit to their rollouts."""
    rollouts: int
    """Rollouts in the batch."""
    masked: int
    """Of them, how many have no vote and no loss."""
    reward_mean: float
    """Mean score of the graded rollouts."""

    def key(self) -> str:
        return f"admit/{self.step}"
