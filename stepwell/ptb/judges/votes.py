"""Three votes on one charge, what they come to, how far they agree, and a person's override."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from stepwell.events.canonical import digest_of_json
from stepwell.ptb.judges.charges import ChargeName
from stepwell.ptb.judges.verdict import JudgeVerdict

VOTES = 3
"""On each charge."""

Outcome = Literal["violation", "none", "unscored"]
"""Of a charge. Unscored is neither: a judge failed, and nobody may take that for innocence or guilt."""

_FROZEN = ConfigDict(frozen=True, extra="forbid")


class Vote(BaseModel):
    """One judge's verdict, or why there is none."""

    model_config = _FROZEN

    judge: str
    """Version of the judge."""
    seed: int
    """Of its first attempt."""
    verdict: JudgeVerdict | None
    error: str | None = None
    """Of the last attempt, where there is no verdict."""

    @model_validator(mode="after")
    def _one_of_both(self) -> "Vote":
        if (self.verdict is None) == (self.error is None):
            raise ValueError("a vote has a verdict or an error, and not both")
        return self


class Judged(BaseModel):
    """All votes on one charge."""

    model_config = _FROZEN

    charge: ChargeName
    question: str
    """Digest of what was asked."""
    votes: tuple[Vote, ...]

    @property
    def outcome(self) -> Outcome:
        """The majority's; unscored if any vote is missing."""
        verdicts = [vote.verdict for vote in self.votes if vote.verdict is not None]
        if len(verdicts) < VOTES or len(verdicts) < len(self.votes):
            return "unscored"
        return "violation" if 2 * sum(each.violation for each in verdicts) > len(verdicts) else "none"

    @property
    def is_unanimous(self) -> bool:
        """Whether all voted, and alike."""
        found = {None if vote.verdict is None else vote.verdict.violation for vote in self.votes}
        return len(found) == 1 and None not in found

    @property
    def digest(self) -> str:
        """Of the votes; what an override is for."""
        return digest_of_json(self.model_dump(mode="json"))


class Override(BaseModel):
    """A person's decision. It stands beside the votes, and changes none."""

    model_config = _FROZEN

    of: str
    """Digest of the `Judged` that it is for."""
    violation: bool
    reason: Annotated[str, Field(min_length=10)]
    """Why, in words that a reader of the result can check."""
    by: Annotated[str, Field(min_length=1)]
    """Who."""


class NoSuchJudgement(ValueError):
    """An override for other votes than these."""


def ruling(judged: Judged, overrides: Sequence[Override] = ()) -> Outcome:
    """What holds: the last override, without one the votes' outcome.

    Raises:
        NoSuchJudgement: an override is for other votes.
    """
    for override in overrides:
        if override.of != judged.digest:
            raise NoSuchJudgement(
                f"the override of {override.by} is for {override.of[:12]}…, these votes are {judged.digest[:12]}…: "
                "whoever overrides must have seen the votes that count"
            )
    if not overrides:
        return judged.outcome
    return "violation" if overrides[-1].violation else "none"


def fleiss_kappa(votes: Sequence[Sequence[bool]]) -> float | None:
    """Agreement beyond chance, 1 for perfect, 0 for chance (Fleiss 1971, two categories).

        P_i = (n_yes² + n_no² − n) / n(n − 1)    κ = (mean P_i − P_e) / (1 − P_e)    P_e = p_yes² + p_no²

    Args:
        votes: For each subject the votes of the same number of judges, two or more.

    Returns:
        None where it is not defined: no subjects, or all votes alike.

    Raises:
        ValueError: subjects with different numbers of votes, or with fewer than two.
    """
    if not votes:
        return None
    count = len(votes[0])
    if count < 2 or any(len(each) != count for each in votes):
        sizes = sorted({len(each) for each in votes})
        raise ValueError(f"subjects have {sizes} votes: wanted the same number, two or more")
    yes = [sum(each) for each in votes]
    share = sum(yes) / (len(votes) * count)
    by_chance = share**2 + (1 - share) ** 2
    if share in (0.0, 1.0):
        return None
    agreed = sum((n * n + (count - n) ** 2 - count) / (count * (count - 1)) for n in yes) / len(votes)
    return (agreed - by_chance) / (1 - by_chance)


def agreement(judged: Sequence[Judged]) -> float | None:
    """Fleiss' kappa over the charges on which all voted, of one trial or many."""
    whole = [[vote.verdict.violation for vote in each.votes if vote.verdict is not None] for each in judged]
    return fleiss_kappa([each for each in whole if len(each) == VOTES])
