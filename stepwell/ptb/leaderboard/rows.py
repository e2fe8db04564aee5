"""Rows of a leaderboard."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import get_args

from stepwell.ptb.leaderboard.board import Part, PlaceSaid, Row
from stepwell.ptb.leaderboard.filled import Penalty, Place, RunSet, imputed_share, score_of
from stepwell.ptb.leaderboard.ranking import rank_of, rank_rows
from stepwell.ptb.leaderboard.records import Basis, Configuration, Status
from stepwell.ptb.leaderboard.statistics import spread

BasePoints = Mapping[tuple[str, str], float]
"""Points by base model and benchmark."""


@dataclass(frozen=True)
class Entry:
    """One configuration with its runs that are scored."""

    configuration: Configuration
    runs: tuple[RunSet, ...]


def weighted(points: BasePoints, basis: Basis) -> float:
    """Weighted points of a reference that has all places."""
    return sum(
        weight * fmean(points[model, name] for model in basis.base_models) for name, weight in basis.weights.items()
    )


def row_of(entry: Entry, basis: Basis, base: BasePoints) -> Row:
    """The row of a configuration, without its rank."""
    runs, weights = entry.runs, basis.weights
    score = spread([_points(run.places, weights) for run in runs])
    of_base = weighted(base, basis)
    counts: Counter[Status] = Counter(place.status for run in runs for place in run.places)
    models = {
        model: _part([[one for one in run.places if one.base_model == model] for run in runs], weights, base)
        for model in basis.base_models
    }
    benchmarks = {
        name: _part([[one for one in run.places if one.benchmark == name] for run in runs], weights, base)
        for name in sorted(weights)
    }
    return Row(
        configuration=entry.configuration,
        rank=None,
        ranks=None,
        tie_group=None,
        score=score,
        insufficient=score.insufficient,
        raw_score=_mean_of(_raw(run, weights) for run in runs),
        base=of_base,
        gain=score.mean - of_base,
        by_base_model=models,
        by_benchmark=benchmarks,
        places=dict(sorted(counts.items())),
        imputed_share=fmean(imputed_share(run, basis) for run in runs),
        under={one: _mean_of(score_of(run.places, weights, one) for run in runs) for one in get_args(Penalty)},
        rank_under={},
        differs_from_basis=_differences(entry.configuration, basis),
        cells=tuple(_said(run, place) for run in runs for place in run.places),
    )


def _part(chosen: Sequence[Sequence[Place]], weights: Mapping[str, float], base: BasePoints) -> Part:
    """What a row has on some places, which are the same in each run."""
    score = spread([_points(places, weights) for places in chosen])
    asked = [_clean(one, base[one.base_model, one.benchmark]) for one in chosen[0]]
    of_base = _points(asked, weights)
    return Part(score=score, base=of_base, gain=score.mean - of_base)


def _clean(place: Place, points: float) -> Place:
    return Place(place.base_model, place.benchmark, "clean", points, (), None, None)


def _points(places: Iterable[Place], weights: Mapping[str, float]) -> float:
    points = score_of(places, weights)
    if points is None:
        raise ValueError("no place: a run-set has at least one")
    return points


def _raw(run: RunSet, weights: Mapping[str, float]) -> float | None:
    """The score as if nothing had been found."""
    whole = [_clean(one, one.raw) for one in run.places if one.raw is not None]
    return score_of(whole, weights)


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _differences(configuration: Configuration, basis: Basis) -> tuple[str, ...]:
    found: list[str] = []
    if configuration.hours != basis.hours:
        found.append(f"{configuration.hours:g} hours, not {basis.hours:g}")
    if configuration.gpus != basis.gpus:
        found.append(f"{configuration.gpus} GPUs, not {basis.gpus}")
    return tuple(found)


def _said(run: RunSet, place: Place) -> PlaceSaid:
    return PlaceSaid(
        run_set=run.name,
        base_model=place.base_model,
        benchmark=place.benchmark,
        status=place.status,
        raw=place.raw,
        flags=place.flags,
        imputed=place.imputed,
        counted=place.points,
        max_tokens=place.max_tokens,
    )


def placed(rows: Sequence[Row]) -> list[Row]:
    """Rows of one table, in descending order of their means, with their ranks."""
    places = rank_rows([row.score for row in rows])
    found: list[Row] = []
    for row, place in zip(rows, places, strict=True):
        under: dict[Penalty, int | None] = {}
        for one in get_args(Penalty):
            known = [points for other in rows if (points := other.under[one]) is not None]
            own = row.under[one]
            under[one] = None if own is None else rank_of(own, known)
        change = {"rank": place.rank, "ranks": place.ranks, "tie_group": place.tie_group, "rank_under": under}
        found.append(row.model_copy(update=change))
    return found
