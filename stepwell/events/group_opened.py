"""GroupOpened."""

from typing import Literal

from stepwell.events.base import Event


class GroupOpened(Event):
    """A prompt group began. First event of `prompt/<run>/<scope>/<prompt>`."""

    type: Literal["GroupOpened"] = "GroupOpened"

    task: str
    """Digest of the task."""
    task_id: str
    """Its id, for readers."""
    version: int
    """Weight version that generates it."""
    samples: int
    """Rollouts wanted."""

    def key(self) -> str:
        return "opened"
