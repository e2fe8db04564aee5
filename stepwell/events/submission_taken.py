"""SubmissionTaken."""

from typing import Literal

from stepwell.events.base import Event


class SubmissionTaken(Event):
    """What the agent left was taken."""

    type: Literal["SubmissionTaken"] = "SubmissionTaken"
    MEASURED = frozenset({"manifest"})

    epoch: int
    """Start that this is of."""
    weights_digest: str
    """Of the submitted model; empty if there is none."""
    failure: str
    """Why there is no model that can be scored; empty if there is one."""
    model: str
    """Blob: path, size and SHA-256 of the model's files, each of which is a blob; empty if there is none."""
    manifest: str
    """Blob: path, kind, size and SHA-256 of everything in the work folder."""

    def key(self) -> str:
        return f"submission/{self.epoch}"
