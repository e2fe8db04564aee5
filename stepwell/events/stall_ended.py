"""StallEnded."""

from typing import Literal

from stepwell.events.base import Event


class StallEnded(Event):
    """What was away is back, or what failed has succeeded. Stream `health/<run>`."""

    type: Literal["StallEnded"] = "StallEnded"
    KIND = "operational"

    number: int
    """Which stall."""
    lasted_s: float
    """Seconds between the two events."""

    def key(self) -> str:
        return f"stall/{self.number}/ended"
