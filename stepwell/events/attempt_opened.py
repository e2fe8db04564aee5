"""AttemptOpened."""

from typing import Literal

from stepwell.events.base import Event


class AttemptOpened(Event):
    """A worker took a stream up; whoever held it before can append nothing any more."""

    type: Literal["AttemptOpened"] = "AttemptOpened"
    KIND = "operational"

    attempt: str
    """Unique id of the attempt."""
    worker: str
    """Who: host and process."""
    resumed_at: int
    """Recorded turns found when it began; of a benchmark trial, recorded events."""

    def key(self) -> str:
        return f"attempt/{self.attempt}"
