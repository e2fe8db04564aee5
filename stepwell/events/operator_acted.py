"""OperatorActed."""

from typing import Literal

from stepwell.events.base import Event


class OperatorActed(Event):
    """An operator's request was accepted by the run's workflow. Stream `operator/<run>`."""

    type: Literal["OperatorActed"] = "OperatorActed"
    KIND = "operational"

    action: Literal["pause", "resume", "stop"]
    """What was asked."""
    who: str
    """Identity of the client whose Update was accepted."""
    reason: str
    """As given."""
    update: str
    """Id of the Temporal Update: one request is one event, however often it is delivered."""

    def key(self) -> str:
        return f"operator/{self.update}"
