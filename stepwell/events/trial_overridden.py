"""TrialOverridden."""

from typing import Literal

from stepwell.events.base import Event


class TrialOverridden(Event):
    """A person decided otherwise than a check or judges. Stream `override/<run set>/<cell>`; what it is for stands."""

    type: Literal["TrialOverridden"] = "TrialOverridden"

    number: int
    """How many stood before it."""
    of: str
    """Digest of what it is for: of the votes on a charge, or of a check's report."""
    about: str
    """The charge's or the check's name."""
    violation: bool
    """What holds from now on."""
    reason: str
    """Why, in words that a reader of the result can check."""
    by: str
    """Who."""

    def key(self) -> str:
        return f"override/{self.number}"
