"""UsageRecorded."""

from typing import Literal

from stepwell.events.base import Event


class UsageRecorded(Event):
    """What the run has used since its beginning, by which its limits are held. Stream `health/<run>`."""

    type: Literal["UsageRecorded"] = "UsageRecorded"
    KIND = "operational"

    number: int
    """Records of usage before this one."""
    hours: float
    """Time in which the run was watched, pauses included."""
    gpu_hours: float
    """Sum over engines and trainer ranks of the time that they were there, each counted as one accelerator."""
    generated_tokens: int
    """Tokens that were recorded, repeated ones included."""
    sandbox_minutes: float
    """Sum over recorded turns and verdicts of the time that a sandbox was held for them."""
    seen_xid: int
    """Feed position up to which events are counted: transaction."""
    seen_position: int
    """Feed position up to which events are counted: place in it."""

    def key(self) -> str:
        return f"usage/{self.number}"
