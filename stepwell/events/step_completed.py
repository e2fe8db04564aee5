"""StepCompleted."""

from typing import Literal

from stepwell.events.base import Event


class StepCompleted(Event):
    """The run learned that the trainer finished the step; commits to the weights stream up to it."""

    type: Literal["StepCompleted"] = "StepCompleted"
    MEASURED = frozenset({"weights_head", "weights_seq"})

    step: int
    """Training step."""
    version: int
    """Version that it made, `step + 1`."""
    weights_digest: str
    """Digest of the exported weights of that version."""
    weights_seq: int
    """Sequence number of the `StepTrained` event in `weights/<run>`."""
    weights_head: str
    """Hash of that event."""

    def key(self) -> str:
        return f"complete/{self.step}"
