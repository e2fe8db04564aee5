"""RowsRecorded."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from stepwell.events.base import Event


class RecordedRow(BaseModel):
    """One of several rows of tokens that a rollout's turns make."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    turns: tuple[int, ...]
    """The turns that were generated in it, ascending; each turn of the rollout is in one row."""
    tokens: int
    """Its length."""
    generated_tokens: int
    """Tokens generated in its own turns; what an earlier row generated is context."""
    content: str
    """Its digest (`stepwell.rl.samples.TrainSample`)."""


class RowsRecorded(Event):
    """A rollout whose turns make several rows of tokens has ended: recorded with its end. One row needs no list."""

    type: Literal["RowsRecorded"] = "RowsRecorded"

    epoch: int
    """Epoch whose turns count."""
    rows: tuple[RecordedRow, ...]
    """In the order of their first turns."""

    def key(self) -> str:
        return "rows"
