"""RunSetFinished."""

from typing import Literal

from stepwell.events.base import Event
from stepwell.events.children import Commitment


class RunSetFinished(Event):
    """Every trial of a run set is scored. Last event of `run-set/<run set>`."""

    type: Literal["RunSetFinished"] = "RunSetFinished"

    scored: int
    """Trials."""
    heads: Commitment
    """Digests over the streams of its trials."""

    def key(self) -> str:
        return "finished"
