"""PassScored."""

from typing import Literal

from stepwell.events.base import Event


class PassScored(Event):
    """One pass of the submitted model over the benchmark, in a sandbox where no agent ever was."""

    type: Literal["PassScored"] = "PassScored"

    max_tokens: int
    """Of one answer."""
    seed: int
    """Of the pass."""
    points: float | None
    """0 to 100; None while answers are unscored."""
    unscored: int
    """Answers that could not be scored."""
    answers: str
    """Blob: each item's answer, and what it was found to be."""

    def key(self) -> str:
        return f"pass/{self.seed}"
