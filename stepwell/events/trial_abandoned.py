"""TrialAbandoned."""

from typing import Literal

from stepwell.events.base import Event


class TrialAbandoned(Event):
    """Infrastructure failed for good, for now: the trial has no result, and `stepwell ptb run` takes it up again."""

    type: Literal["TrialAbandoned"] = "TrialAbandoned"
    KIND = "operational"

    number: int
    """How often it was given up before."""
    cause: str
    """What failed last."""

    def key(self) -> str:
        return f"abandoned/{self.number}"
