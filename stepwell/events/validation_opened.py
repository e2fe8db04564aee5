"""ValidationOpened."""

from typing import Literal

from stepwell.events.base import Event


class ValidationOpened(Event):
    """A validation began, on one pinned version. First event of `validation/<run>/<scope>`."""

    type: Literal["ValidationOpened"] = "ValidationOpened"

    version: int
    """Weight version."""
    weights_digest: str
    """Digest of its exported weights."""
    dataset: str
    """Which set."""
    tasks: list[str]
    """Digest of each task."""
    samples: int
    """Rollouts a task."""

    def key(self) -> str:
        return "opened"
