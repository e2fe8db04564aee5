"""VerdictReached."""

from typing import Literal

from stepwell.events.base import Event


class VerdictReached(Event):
    """A tree was graded. Only event of `verdict/<key>`: a verdict is a function of task, tree and grader."""

    type: Literal["VerdictReached"] = "VerdictReached"
    MEASURED = frozenset({"duration_s", "report"})

    task: str
    """Digest of the task."""
    tree: str
    """Digest of the agent's tree."""
    grader: str
    """Digest of the grader's sources."""
    score: float
    """1.0 if every hidden test did as expected, else 0.0."""
    timed_out: bool
    """Whether the hidden tests were cut off by their deadline."""
    report: str
    """Blob: the result of each test, and why the score is 0."""
    duration_s: float
    """Wall clock of the grading, in seconds."""

    def key(self) -> str:
        return "verdict"
