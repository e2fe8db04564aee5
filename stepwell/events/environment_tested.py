"""EnvironmentTested."""

from typing import Literal

from stepwell.events.base import Event


class EnvironmentTested(Event):
    """Before the clock: what an agent needs is there and works, on the host where it is about to run."""

    type: Literal["EnvironmentTested"] = "EnvironmentTested"
    KIND = "operational"

    epoch: int
    """How often the trial had been started again."""
    host: str
    """Where the agent will run: what its task queue is named after."""
    version: str
    """Of the scaffold's program, as it says."""
    report: str
    """Blob: what was tested, and what came of it."""

    def key(self) -> str:
        return f"tested/{self.epoch}"
