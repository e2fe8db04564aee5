"""AgentRestarted."""

from typing import Literal

from stepwell.events.base import Event


class AgentRestarted(Event):
    """The agent's host was lost: what was recorded since the trial's start is void, and it starts again from there."""

    type: Literal["AgentRestarted"] = "AgentRestarted"
    KIND = "operational"

    epoch: int
    """Number of the start that follows, from 1."""
    host: str
    """What was lost; empty if the trial had none yet."""
    cause: str
    """How it was noticed."""

    def key(self) -> str:
        return f"restart/{self.epoch}"
