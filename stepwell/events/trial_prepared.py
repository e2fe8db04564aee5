"""TrialPrepared."""

from typing import Literal

from stepwell.events.base import Event


class TrialPrepared(Event):
    """What an agent starts from. A trial that starts again starts from the same, or not at all."""

    type: Literal["TrialPrepared"] = "TrialPrepared"

    workspace: str
    """Digest of the files that lie in its work folder at the start."""
    files: str
    """Blob: SHA-256 by path of those that it must not change."""
    prompt: str
    """Blob: what it is told, whole."""
    prompt_digest: str
    """Digest of what all agents on its cell are told."""
    statements: list[str]
    """What the prompt says of what is enforced, and where both disagree."""

    def key(self) -> str:
        return "prepared"
