"""All that a review is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import model_validator

from stepwell.ptb.leaderboard.records import Basis, Cell
from stepwell.ptb.review.setup_record import SetupRecord
from stepwell.ptb.review.trial_record import Name, Strict, TrialRecord


class BrokenRecord(ValueError):
    """A file holds no record to review, or the record contradicts itself."""


class Audited(Strict):
    """What a person found who looked at one scored answer."""

    kind: Literal["audited"] = "audited"
    unit: Name
    """Digest, as the sample names it."""
    score_is_right: bool | None
    """None if nobody has looked, or it cannot be told: it counts neither as right nor as wrong."""
    reason: str
    by: str
    shown: dict[str, object] | None = None
    """What the person was shown."""

    @model_validator(mode="after")
    def _is_signed(self) -> "Audited":
        if self.score_is_right is not None and not (self.reason.strip() and self.by.strip()):
            raise ValueError("a score is called right or wrong without a reason or a name: wanted both")
        return self


class ReviewRecord(Strict):
    """What is known of trials and of how they were evaluated. Results as the leaderboard reads them, and beside them
    what the results do not say."""

    bases: tuple[Basis, ...]
    cells: tuple[Cell, ...]
    setups: tuple[SetupRecord, ...] = ()
    trials: tuple[TrialRecord, ...] = ()
    audited: tuple[Audited, ...] = ()


@dataclass(frozen=True)
class Trial:
    """One agent's cell with what is known of it, and its weight in what is reviewed."""

    cell: Cell
    record: TrialRecord
    """Empty where nothing is known."""
    weight: float
    """Share of all scores under review, 0 to 1."""


def trials_of(record: ReviewRecord) -> list[Trial]:
    """The agents' cells with their records; each weighs what it weighs in its run's score, over all runs."""
    known = {each.trial: each for each in record.trials}
    bases = {each.key: each for each in record.bases}
    cells = [each for each in record.cells if each.role == "agent"]
    parts = [_part(each, bases[each.basis]) for each in cells]
    total = sum(parts)
    return [
        Trial(cell, known.get(cell.trial, TrialRecord(trial=cell.trial)), part / total)
        for cell, part in zip(cells, parts, strict=True)
    ]


def weight_of(trials: Sequence[Trial]) -> float:
    """Their share of all scores under review."""
    return sum(each.weight for each in trials)


def _part(cell: Cell, basis: Basis) -> float:
    return basis.weights[cell.benchmark] / len(basis.base_models)
