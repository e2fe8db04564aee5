"""PromptReplaced."""

from typing import Literal

from stepwell.events.base import Event


class PromptReplaced(Event):
    """A prompt that was quarantined or abandoned is replaced from the reserve. Stream `run/<run>`."""

    type: Literal["PromptReplaced"] = "PromptReplaced"

    step: int
    """Training step."""
    prompt: int
    """Index of the new prompt in the step, after those that were dispatched."""
    replaces: int
    """Index of the prompt that failed."""
    task: str
    """Digest of the new prompt's task."""

    def key(self) -> str:
        return f"replace/{self.step}/{self.prompt}"
