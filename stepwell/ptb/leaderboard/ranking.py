"""Ranks, and what the runs do not allow to be ranked."""

from collections.abc import Sequence
from dataclasses import dataclass

from stepwell.ptb.leaderboard.statistics import Spread, are_apart


@dataclass(frozen=True)
class Ranked:
    """The place of one row."""

    rank: int
    """By the mean; equal means share one."""
    ranks: tuple[int, int]
    """Those that are not excluded."""
    tie_group: int


def rank_rows(scores: Sequence[Spread]) -> list[Ranked]:
    """The place of each row, rows in descending order of their means. A tie group begins with the first row that is
    apart from the first of the group before."""
    places: list[Ranked] = []
    group, leader = 0, 0
    for at, one in enumerate(scores):
        if at == 0 or are_apart(scores[leader], one):
            group, leader = group + 1, at
        better = sum(are_apart(one, other) and other.mean > one.mean for other in scores)
        worse = sum(are_apart(one, other) and other.mean < one.mean for other in scores)
        ranks = (1 + better, len(scores) - worse)
        places.append(Ranked(rank_of(one.mean, [other.mean for other in scores]), ranks, group))
    return places


def rank_of(value: float, values: Sequence[float]) -> int:
    """1 for the highest."""
    return 1 + sum(other > value for other in values)
