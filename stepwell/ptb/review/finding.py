"""What a review says: a finding for each check, and the verdict that follows."""

from enum import StrEnum
from typing import Literal

from stepwell.ptb.review.trial_record import Strict


class Group(StrEnum):
    """Part of the rubric."""

    REVIEWABILITY = "reviewability"
    SCORING = "scoring"
    CONSISTENCY = "consistency"
    ELICITATION = "elicitation"
    BIAS = "bias"
    QUALITY = "quality"
    """Reported; decides nothing."""


class Standing(StrEnum):
    """How a check came out."""

    PASS = "pass"
    FLAGGED = "flagged"
    UNKNOWN = "unknown"
    """The record does not say: never a pass."""
    REPORTED = "reported"
    """Of a check that decides nothing."""


class Verdict(StrEnum):
    """Of the whole review."""

    VERIFIED = "Verified"
    """It can be reviewed, and every check that decides passed."""
    FLAWED = "Flawed"
    """A check that decides found a flaw."""
    NEI = "Not enough information"
    """It cannot be reviewed, or a check that decides is unknown."""


Grade = Literal["Full", "Partial", "Inadequate"]
"""Of reviewability."""


class Evidence(Strict):
    """Something that a check saw."""

    says: str
    where: tuple[str, ...] = ()
    """Trials, benchmarks or keys that it was seen in."""


class Finding(Strict):
    """One check."""

    id: str
    """Such as `S3`."""
    group: Group
    title: str
    looked_at: str
    """What was looked at, and how much of it there was."""
    standing: Standing
    label: str
    """The rubric's own word where it has one, such as `Partial`; else the standing."""
    share: float | None
    """Of all scores, what is affected, 0 to 1; None where that is not a share."""
    evidence: tuple[Evidence, ...]
    would_change: str
    """What would make it come out otherwise."""


class SampleSaid(Strict):
    """How far the audit by hand has come."""

    population: int
    """Scored answers."""
    wanted: int
    """Of them, how many are to be looked at."""
    audited: int
    """Of those, how many were."""
    error_share: float | None
    """Of the score, by the audited ones; None if a part of the score has none."""
    missing: tuple[str, ...]
    """Units that are to be looked at still."""


class Review(Strict):
    """All of it."""

    verdict: Verdict
    because: tuple[str, ...]
    """What the verdict follows from: ids and words."""
    reviewability: Grade
    trials: int
    keys: tuple[str, ...]
    """Comparability keys."""
    findings: tuple[Finding, ...]
    sample: SampleSaid
