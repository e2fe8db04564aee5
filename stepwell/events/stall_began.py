"""StallBegan."""

from typing import Literal

from stepwell.events.base import Event


class StallBegan(Event):
    """Something that the run needs is away, or fails again and again. Stream `health/<run>`."""

    type: Literal["StallBegan"] = "StallBegan"
    KIND = "operational"

    number: int
    """Stalls of the run before this one."""
    what: str
    """What is waited for: `trainer`, `engine`, `sandbox`, or an activity's name."""
    cause: str
    """In words."""
    noticed_after_s: float
    """Seconds from its beginning, as far as it is known, to this event."""

    def key(self) -> str:
        return f"stall/{self.number}"
