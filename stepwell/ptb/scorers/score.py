"""Scores all answers to a benchmark, and sums them up. What could not be scored stays apart from what was wrong."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from stepwell.ptb.item import CallGold, ChoiceGold, Item, NumberGold, PairGold, ProgramGold, RubricGold
from stepwell.ptb.judging.judge import Judge
from stepwell.ptb.scorers.calls import score_call
from stepwell.ptb.scorers.choices import score_choice
from stepwell.ptb.scorers.numbers import score_number
from stepwell.ptb.scorers.pairs import score_pair
from stepwell.ptb.scorers.programs.score import ProgramScorer
from stepwell.ptb.scorers.rubrics import score_rubric
from stepwell.ptb.scorers.worth import Scored


@dataclass(frozen=True)
class Means:
    """What scoring may need."""

    judge: Judge | None = None
    programs: ProgramScorer | None = None


@dataclass(frozen=True)
class BenchmarkScore:
    """Score of one pass over a benchmark."""

    expected: int
    """Items that there are."""
    scored: int
    """Items that have a worth."""
    value: float | None
    """Weighted mean of the items, clipped to 0 to 1; None unless every item is scored."""
    low: float
    """What it would be if all unscored answers were worth nothing."""
    high: float
    """And if they were all right."""
    disagreeing: int
    """Pairs in which the judge preferred another answer when their order was turned."""

    @property
    def unscored(self) -> int:
        """Items without a worth."""
        return self.expected - self.scored


async def score_answers(items: Sequence[Item], answers: Sequence[str], means: Means, *, seed: int) -> list[Scored]:
    """Worth of each answer, in order.

    Args:
        items: All of one benchmark, or some.
        answers: One to each.
        means: Judge and sandboxes, for benchmarks that need them.
        seed: Of the pass; seeds of the judge's answers are drawn from it.

    Raises:
        ValueError: another number of answers than of items, or a judge or sandboxes are needed and not given.
        SandboxError: as `ProgramScorer.score`.
    """
    pairs = list(zip(items, answers, strict=True))
    programs = [(answer, item.gold) for item, answer in pairs if isinstance(item.gold, ProgramGold)]
    tested = iter(await _programs(programs, means)) if programs else iter(())

    async def worth(item: Item, answer: str) -> Scored:
        gold = item.gold
        match gold:
            case NumberGold():
                return score_number(answer, gold)
            case ChoiceGold():
                return score_choice(answer, gold)
            case CallGold():
                return score_call(answer, gold)
            case ProgramGold():
                return next(tested)
            case RubricGold():
                return await score_rubric(item.id, item.messages, answer, gold, _judge(means), seed=seed)
            case PairGold():
                return await score_pair(item.id, item.messages, answer, gold, _judge(means), seed=seed)
        assert_never(gold)

    return await asyncio.gather(*(worth(item, answer) for item, answer in pairs))


def collect(scored: Sequence[Scored]) -> BenchmarkScore:
    """The benchmark's score.

    Raises:
        ValueError: no items.
    """
    if not scored:
        raise ValueError("no items: a score needs at least one")
    known = [(one.value, one.weight) for one in scored if one.value is not None]
    unknown = sum(one.weight for one in scored if one.value is None)
    weight = sum(weight for _, weight in known) + unknown
    total = sum(value * weight for value, weight in known)
    low, high = (max(0.0, min(1.0, one / weight)) for one in (total, total + unknown))
    return BenchmarkScore(
        expected=len(scored),
        scored=len(known),
        value=low if len(known) == len(scored) else None,
        low=low,
        high=high,
        disagreeing=sum(one.orders_agree is False for one in scored),
    )


async def _programs(answers: Sequence[tuple[str, ProgramGold]], means: Means) -> list[Scored]:
    if means.programs is None:
        raise ValueError("programs are to be scored, and no sandboxes are given: give a ProgramScorer")
    return await means.programs.score(answers)


def _judge(means: Means) -> Judge:
    if means.judge is None:
        raise ValueError("answers are to be judged, and no judge is given: give one")
    return means.judge
