"""A run over all cells, with every place filled: raw score, what was found, and what counts, each by itself."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from stepwell.ptb.leaderboard.records import Basis, Cell, Status

Penalty = Literal["base", "zero", "drop"]
"""What counts where there is no clean score: the base model's (the published rule), nothing, or nothing is counted."""


@dataclass(frozen=True)
class Place:
    """One base model on one benchmark."""

    base_model: str
    benchmark: str
    status: Status
    raw: float | None
    """Points as scored."""
    flags: tuple[str, ...]
    """Checks that found something."""
    imputed: float | None
    """Points of the base model, where they count instead; None where the raw score counts or nothing is known yet."""
    max_tokens: int | None

    @property
    def points(self) -> float | None:
        """What counts."""
        return self.raw if self.status == "clean" else self.imputed


@dataclass(frozen=True)
class RunSet:
    """All places of one run."""

    name: str
    places: tuple[Place, ...]

    @property
    def is_scored(self) -> bool:
        """Whether no place waits for its score."""
        return all(place.status != "unscored" for place in self.places)


def fill(name: str, cells: Iterable[Cell], basis: Basis, base: Mapping[tuple[str, str], float]) -> RunSet:
    """The run-set of these cells.

    Args:
        name: Of the run-set.
        cells: Of one configuration and run-set.
        basis: Says which places there are.
        base: Points of each base model on each benchmark.
    """
    found = {(cell.base_model, cell.benchmark): cell for cell in cells}
    places: list[Place] = []
    for model in basis.base_models:
        for benchmark in sorted(basis.weights):
            cell = found.get((model, benchmark))
            status: Status = "missing" if cell is None else cell.status
            counts_base = status in ("flagged", "failed", "missing")
            places.append(
                Place(
                    base_model=model,
                    benchmark=benchmark,
                    status=status,
                    raw=None if cell is None else cell.raw,
                    flags=() if cell is None else tuple(flag.check for flag in cell.flags),
                    imputed=base[model, benchmark] if counts_base else None,
                    max_tokens=None if cell is None else cell.max_tokens,
                )
            )
    return RunSet(name, tuple(places))


def score_of(places: Iterable[Place], weights: Mapping[str, float], penalty: Penalty = "base") -> float | None:
    """Weighted points of places: each benchmark's mean over its models times its weight; weights are taken anew where
    benchmarks are not there or, under `drop`, have no clean place. None if nothing is left.

    Args:
        places: Of one run-set whose places are scored, or some of them.
        weights: By benchmark.
        penalty: What counts where there is no clean score.
    """
    by_benchmark: dict[str, list[float]] = {}
    for place in places:
        points = _under(place, penalty)
        if points is not None:
            by_benchmark.setdefault(place.benchmark, []).append(points)
    total = math.fsum(weights[name] for name in by_benchmark)
    if total == 0:
        return None
    return math.fsum(weights[name] * fmean(points) for name, points in by_benchmark.items()) / total


def imputed_share(run_set: RunSet, basis: Basis) -> float:
    """Share of the score's weight that stands on base models' points, 0 to 1."""
    models = len(basis.base_models)
    return math.fsum(basis.weights[place.benchmark] / models for place in run_set.places if place.imputed is not None)


def _under(place: Place, penalty: Penalty) -> float | None:
    if place.status == "clean" or penalty == "base":
        return place.points
    return 0.0 if penalty == "zero" else None
