"""CheckpointSaved."""

from typing import Literal

from stepwell.events.base import Event


class CheckpointSaved(Event):
    """Master weights and optimiser of a version are in the store: a cache, complete when this event stands."""

    type: Literal["CheckpointSaved"] = "CheckpointSaved"
    KIND = "operational"

    version: int
    """Which version."""
    files: str
    """Blob: manifest of the checkpoint folder, path to digest."""

    def key(self) -> str:
        return f"checkpoint/{self.version}"
