"""RunCreated."""

from typing import Any, Literal

from stepwell.events.base import Event


class RunCreated(Event):
    """A run began. First event of `run/<run>`; everything that follows is decided by it and by operators."""

    type: Literal["RunCreated"] = "RunCreated"

    recipe: dict[str, Any]
    """The resolved recipe, every key."""
    recipe_digest: str
    """Digest of its canonical JSON: the same command finds the run again by it."""
    task_set: str
    """Blob: the task set's manifest, task ids and digests by split and in curriculum order."""

    def key(self) -> str:
        return "created"
