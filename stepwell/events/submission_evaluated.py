"""SubmissionEvaluated."""

from typing import Literal

from stepwell.events.base import Event


class SubmissionEvaluated(Event):
    """The final evaluation came to its end; its passes stand before it."""

    type: Literal["SubmissionEvaluated"] = "SubmissionEvaluated"
    MEASURED = frozenset({"report"})

    failure: str
    """Why the submission has no score; empty if it has one, or if answers are still unscored."""
    max_tokens: int | None
    """Of one answer, in the attempt that gave the score; None if none did."""
    died: int
    """Attempts that died before it."""
    digest: str
    """Of the result without its numeric environment: an evaluation again has the same."""
    report: str
    """Blob: the result without its items (`stepwell.ptb.evaluation.EvaluationResult`)."""

    def key(self) -> str:
        return "evaluated"
