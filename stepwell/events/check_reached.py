"""CheckReached."""

from typing import Literal

from stepwell.events.base import Event


class CheckReached(Event):
    """A check that is a program came to its verdict."""

    type: Literal["CheckReached"] = "CheckReached"
    MEASURED = frozenset({"report"})

    epoch: int
    """Start that this is of."""
    check: Literal["identity", "contamination"]
    """Which."""
    version: str
    """Of the check: another's verdicts are not comparable."""
    verdict: str
    """In its own words."""
    passed: bool
    """Whether the submission may be scored as its agent's."""
    reason: str
    """One line that says why; what a flag says."""
    report: str
    """Blob: all that it found."""

    def key(self) -> str:
        return f"check/{self.epoch}/{self.check}"
