"""ValidationRecorded."""

from typing import Literal

from stepwell.events.base import Event


class ValidationRecorded(Event):
    """The run learned the result of a validation; commits to its stream."""

    type: Literal["ValidationRecorded"] = "ValidationRecorded"
    MEASURED = frozenset({"stream_head"})

    version: int
    """Weight version that was validated."""
    dataset: str
    """Which set: `main`, `confirm`, `heldout`."""
    pass_1: float
    """Mean over tasks of the share of samples that pass."""
    pass_k: float
    """Share of tasks that any sample passes."""
    k: int
    """Samples a task."""
    stream_head: str
    """Hash of the last event of the validation's stream."""
    validation_facts: str
    """Facts digest of the validation's stream."""

    def key(self) -> str:
        return f"validation/{self.version}/{self.dataset}"
