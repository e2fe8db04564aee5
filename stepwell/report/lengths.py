"""Whether what was trained is as long as what was generated.

A run that gives up its slow rollouts trains on short ones, and nobody sees it in the loss (NeMo-RL PR 3599: 736 prompts
skipped, biased to long rollouts; tinker-cookbook PR 822, prime-rl PR 1512: slow rollouts generated again and again,
never trained). So the lengths of all rollouts of prompts that have their fate are kept, and those with a vote compared
with them. The one set is part of the other: the difference is exact, no estimate, and needs no test of significance.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

MEAN_BOUND = 0.05
"""Difference of the means, as a share, above which there is a bias."""
KS_BOUND = 0.1
"""Kolmogorov-Smirnov statistic above which there is a bias."""
QUANTILES = (0.1, 0.5, 0.9, 1.0)
"""Shown of each distribution."""


@dataclass(frozen=True)
class Spread:
    """A distribution of lengths."""

    count: int
    """Rollouts."""
    mean: float
    """Mean length; 0 of none."""
    quantiles: tuple[int, ...]
    """At `QUANTILES`: the least length that at least this share does not exceed; empty of none."""


@dataclass(frozen=True)
class Comparison:
    """Lengths of trained rollouts against those of all that were generated."""

    unit: str
    """`tokens` or `turns`."""
    trained: Spread
    """Of rollouts with a vote in a trained group."""
    generated: Spread
    """Of all rollouts of prompts that have their fate."""
    ks: float
    """Largest difference of the two distribution functions, 0 to 1."""

    @property
    def difference(self) -> float:
        """How much longer trained rollouts are, as a share of the generated ones' mean; below 0 they are shorter."""
        return self.trained.mean / self.generated.mean - 1.0 if self.generated.mean else 0.0

    @property
    def is_biased(self) -> bool:
        """Whether the two differ by more than the bounds."""
        return abs(self.difference) > MEAN_BOUND or self.ks > KS_BOUND

    def words(self) -> str:
        """`trained rollouts are 3.2 % shorter than generated ones in tokens (KS 0.02)`."""
        percent = round(100 * abs(self.difference), 1)
        how = "as long as" if percent == 0 else f"{percent} % {'longer' if self.difference > 0 else 'shorter'} than"
        flag = "BIAS: " if self.is_biased else ""
        return f"{flag}trained rollouts are {how} generated ones in {self.unit} (KS {self.ks:.2f})"

    def as_json(self) -> dict[str, Any]:
        """For programs, with what follows from the figures."""
        return {**asdict(self), "difference": self.difference, "is_biased": self.is_biased}


@dataclass(frozen=True)
class Length:
    """How long one rollout is, its last epoch alone."""

    tokens: int
    """Tokens generated."""
    turns: int
    """Turns recorded."""
    has_vote: bool
    """Whether it counts in a trained group's baseline."""


def compare_lengths(lengths: Sequence[Length]) -> tuple[Comparison, ...]:
    """Compares rollouts in tokens and in turns; nothing where none has a vote or none was generated.

    Args:
        lengths: One a rollout that generated something and whose prompt has its fate.
    """
    trained = [length for length in lengths if length.has_vote]
    if not trained:
        return ()
    return (
        compare("tokens", [length.tokens for length in trained], [length.tokens for length in lengths]),
        compare("turns", [length.turns for length in trained], [length.turns for length in lengths]),
    )


def compare(unit: str, trained: Sequence[int], generated: Sequence[int]) -> Comparison:
    """Compares two sets of lengths; both have one at least."""
    return Comparison(unit, spread(trained), spread(generated), ks_statistic(trained, generated))


def spread(lengths: Sequence[int]) -> Spread:
    """Mean and quantiles."""
    if not lengths:
        return Spread(0, 0.0, ())
    ordered = sorted(lengths)
    places = [max(0, math.ceil(share * len(ordered)) - 1) for share in QUANTILES]
    return Spread(len(ordered), sum(ordered) / len(ordered), tuple(ordered[place] for place in places))


def ks_statistic(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sample Kolmogorov-Smirnov statistic: the largest difference of the empirical distribution functions.

    Raises:
        ValueError: one of them is empty.
    """
    if not first or not second:
        raise ValueError(f"{len(first)} and {len(second)} values: each distribution needs one")
    ours, theirs = sorted(first), sorted(second)
    return max(
        abs(bisect_right(ours, value) / len(ours) - bisect_right(theirs, value) / len(theirs))
        for value in {*ours, *theirs}
    )
