"""AgentStarted."""

from typing import Literal

from stepwell.events.base import Event


class AgentStarted(Event):
    """The agent's clock runs."""

    type: Literal["AgentStarted"] = "AgentStarted"
    KIND = "operational"

    epoch: int
    """How often the trial had been started again."""
    host: str
    """Where."""
    folder: str
    """Of its supervisor, on that host."""

    def key(self) -> str:
        return f"started/{self.epoch}"
