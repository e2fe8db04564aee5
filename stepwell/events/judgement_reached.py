"""JudgementReached."""

from typing import Literal

from stepwell.events.base import Event


class JudgementReached(Event):
    """Three judges voted on a charge."""

    type: Literal["JudgementReached"] = "JudgementReached"
    MEASURED = frozenset({"judged", "votes", "question"})

    epoch: int
    """Start that this is of."""
    charge: Literal["distillation", "lookup", "evaluation_edits", "derived_data"]
    """What was asked."""
    outcome: Literal["violation", "none", "unscored"]
    """What the votes come to."""
    judged: str
    """Digest of the votes: what an override is for."""
    votes: str
    """Blob: the votes, each with its reasons (`stepwell.ptb.judges.Judged`)."""
    question: str
    """Blob: what was asked."""

    def key(self) -> str:
        return f"judgement/{self.epoch}/{self.charge}"
