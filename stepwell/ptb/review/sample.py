"""Which scored answers people look at, and what share of the score their errors come to.

Strata are a benchmark on a base model under a key, each with its share of the score. Places in the sample are given
one by one, each to the stratum that has the fewest for its share (Sainte-Laguë), and within it in the order of
digests. So the first 50 are part of the first 100, nobody chooses them, and anybody can draw them again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stepwell.events.canonical import digest_of_json
from stepwell.ptb.review.record import Audited, ReviewRecord, Trial
from stepwell.ptb.review.trial_record import ItemOutcome

FIRST, WIDENED = 50, 100
"""Answers that are looked at, and how many where the first leave it open."""
OPEN = (0.15, 0.25)
"""Shares of the score, ends among them, between which the first answers leave it open."""


@dataclass(frozen=True)
class Unit:
    """One scored answer."""

    id: str
    trial: Trial
    outcome: ItemOutcome

    @property
    def stratum(self) -> tuple[str, str, str]:
        """Key, benchmark and base model."""
        cell = self.trial.cell
        return (cell.basis, cell.benchmark, cell.base_model)


@dataclass(frozen=True)
class Sample:
    """The sample, with what people found."""

    population: int
    order: tuple[Unit, ...]
    """Those that may be looked at, at most `WIDENED`."""
    shares: Mapping[tuple[str, str, str], float]
    """Of the score, by stratum: of all trials, those without answers too."""
    audited: Mapping[str, Audited] = field(default_factory=lambda: dict[str, Audited]())
    """By unit."""

    @property
    def wanted(self) -> int:
        """How many of the order are to be looked at: the first, and more where these leave it open."""
        if len(self.order) <= FIRST:
            return len(self.order)
        share = self.error_share(FIRST)
        return len(self.order) if share is not None and OPEN[0] <= share <= OPEN[1] else FIRST

    @property
    def units(self) -> tuple[Unit, ...]:
        """Those that are to be looked at."""
        return self.order[: self.wanted]

    @property
    def missing(self) -> tuple[Unit, ...]:
        """Those of them that nobody has looked at, or could tell."""
        return tuple(each for each in self.units if self.is_right(each) is None)

    def is_right(self, unit: Unit) -> bool | None:
        """Whether its score is; None if nobody could tell yet."""
        found = self.audited.get(unit.id)
        return None if found is None else found.score_is_right

    def error_share(self, first: int) -> float | None:
        """Share of the score that is wrong by the first units: the sum over strata of the share of the score times
        the share of errors. Strata that no unit of them stands for are filled by their benchmark's.

        Returns:
            None unless all of them were looked at, and every benchmark has one.
        """
        units = self.order[:first]
        if not units or any(self.is_right(each) is None for each in units):
            return None
        total = 0.0
        for stratum, share in self.shares.items():
            own = [each for each in units if each.stratum == stratum]
            own = own or [each for each in units if each.stratum[:2] == stratum[:2]]
            if not own:
                return None
            total += share * sum(self.is_right(each) is False for each in own) / len(own)
        return total


def draw(record: ReviewRecord, trials: Sequence[Trial]) -> Sample:
    """The sample of a record, the same whoever draws it.

    Args:
        record: Has what people found.
        trials: Of it, with their weights.
    """
    strata: dict[tuple[str, str, str], list[Unit]] = {}
    shares: dict[tuple[str, str, str], float] = {}
    for trial in trials:
        cell = trial.cell
        stratum = (cell.basis, cell.benchmark, cell.base_model)
        shares[stratum] = shares.get(stratum, 0.0) + trial.weight
        for outcome in trial.record.items or ():
            strata.setdefault(stratum, []).append(Unit(_id(trial, outcome), trial, outcome))
    population = sum(map(len, strata.values()))
    queues = {stratum: sorted(units, key=lambda unit: unit.id) for stratum, units in sorted(strata.items())}
    order: list[Unit] = []
    taken = dict.fromkeys(queues, 0)
    while len(order) < min(WIDENED, population):
        left = [stratum for stratum in queues if taken[stratum] < len(queues[stratum])]
        chosen = max(left, key=lambda stratum: shares[stratum] / (2 * taken[stratum] + 1))
        order.append(queues[chosen][taken[chosen]])
        taken[chosen] += 1
    return Sample(population, tuple(order), shares, {each.unit: each for each in record.audited})


def _id(trial: Trial, outcome: ItemOutcome) -> str:
    """Of the answer with its score: one that is scored otherwise is to be looked at again."""
    return digest_of_json(
        [trial.cell.basis, trial.cell.trial, outcome.seed, outcome.item, outcome.answer, outcome.worth]
    )
