"""A leaderboard's plots: means with their intervals, what they are mixtures of, and what penalties would do."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from stepwell.ptb.leaderboard.board import Board, Part, Row
from stepwell.ptb.leaderboard.filled import Penalty
from stepwell.ptb.leaderboard.page.naming import Named
from stepwell.ptb.leaderboard.page.row_plot import Bar, Mark, PlotRow, RowPlot, Rule
from stepwell.ptb.leaderboard.records import Status
from stepwell.ptb.leaderboard.statistics import Spread

_STATUSES: Sequence[Status] = ("clean", "flagged", "failed", "missing")
_RUNS = ("first run", "a run")
_FEW = ("first few", "mean of fewer than five runs")
_MEAN = ("first mean", "mean, 95 %")
_PENALTIES: Mapping[Penalty, tuple[str, str]] = {
    "base": ("first mean", "the base model's points (the rule)"),
    "zero": ("flagged mean", "0"),
    "drop": ("second mean", "left out"),
}


def ranking_plot(board: Board, rows: Named, name: str, title: str) -> RowPlot:
    """Means of rows with their intervals and runs, beside the references."""
    shaded = [bool(row.tie_group and row.tie_group % 2 == 0) for _, row in rows]
    note = "Rows on one ground are not told apart from the first of it." if any(shaded) else ""
    return RowPlot(
        name,
        title,
        "weighted points",
        [
            _scored(label, row.score, _run_points(row, board), is_shaded=shade)
            for (label, row), shade in zip(rows, shaded, strict=True)
        ],
        legend=_legend([row.score for _, row in rows]),
        rules=_references(board),
        fit=_trusted([row.score for _, row in rows]),
        note=note,
    )


def part_plot(rows: Named, place: str, name: str, *, of_model: bool) -> RowPlot:
    """Means on one base model, or on one benchmark."""
    parts: list[Part] = [(row.by_base_model if of_model else row.by_benchmark)[place] for _, row in rows]
    return RowPlot(
        name,
        place.rpartition("/")[2] if of_model else place,
        "points",
        [_scored(label, part.score, ()) for (label, _), part in zip(rows, parts, strict=True)],
        rules=[Rule(parts[0].base, f"base {parts[0].base:.1f}")],
        fit=_trusted([part.score for part in parts]),
    )


def mixture_plot(rows: Named, name: str) -> RowPlot:
    """Of each row's cells, the shares that are clean, flagged, failed and missing."""
    found = [status for status in _STATUSES if any(row.places.get(status) for _, row in rows)]
    return RowPlot(
        name,
        "What the means are mixtures of",
        "% of cells",
        [PlotRow(label, f"{100 * row.imputed_share:.0f} %", bars=_shares(label, row)) for label, row in rows],
        legend=[(status, status) for status in found],
        fit=(100.0,),
        note="At the right, the share of the score's weight that is imputed.",
    )


def penalty_plot(rows: Named, name: str) -> RowPlot:
    """Means if cells without a clean score counted otherwise."""
    return RowPlot(
        name,
        "Under other penalties",
        "weighted points",
        [
            PlotRow(label, _change(row), marks=_penalties(label, row), interval=None, bars=_between(label, row))
            for label, row in rows
        ],
        legend=list(_PENALTIES.values()),
        note="What flagged, failed and missing cells count. At the right, the rank by the rule, and in brackets the "
        "best and worst of the three.",
    )


def _scored(label: str, score: Spread, runs: Sequence[tuple[str, float]], *, is_shaded: bool = False) -> PlotRow:
    interval = None if score.low is None or score.high is None else (score.low, score.high)
    said = "" if interval is None else f", 95 % {interval[0]:.2f} to {interval[1]:.2f}"
    kind = _FEW[0] if score.insufficient else _MEAN[0]
    marks = [Mark(points, _RUNS[0], f"{label}, {run}: {points:.2f}") for run, points in runs]
    marks.append(Mark(score.mean, kind, f"{label}: {score.mean:.2f}{said}, n {score.n}"))
    return PlotRow(label, f"{score.mean:.1f}", marks, interval, is_shaded=is_shaded)


def _legend(scores: Sequence[Spread]) -> list[tuple[str, str]]:
    kinds = [_MEAN] if any(not score.insufficient for score in scores) else []
    kinds += [_FEW] if any(score.insufficient for score in scores) else []
    return [*kinds, _RUNS]


def _references(board: Board) -> list[Rule]:
    told = (("base", board.base), ("few-shot", board.few_shot), ("instruct", board.instruct))
    return [Rule(points, f"{name} {points:.1f}") for name, points in told if points is not None]


def _trusted(scores: Sequence[Spread]) -> list[float]:
    """Ends of the intervals of enough runs: those of two runs may be wider than all else."""
    ends = [end for score in scores if not score.insufficient for end in (score.low, score.high) if end is not None]
    return [min(100.0, max(0.0, end)) for end in ends]


def _run_points(row: Row, board: Board) -> list[tuple[str, float]]:
    """Each run's weighted points, as they count."""
    found: list[tuple[str, float]] = []
    for run in dict.fromkeys(cell.run_set for cell in row.cells):
        counted = {
            name: [c.counted for c in row.cells if (c.run_set, c.benchmark) == (run, name) and c.counted is not None]
            for name in board.basis.weights
        }
        found.append((run, sum(weight * fmean(counted[name]) for name, weight in board.basis.weights.items())))
    return found


def _shares(label: str, row: Row) -> list[Bar]:
    total = sum(row.places.values())
    bars: list[Bar] = []
    before = 0
    for status in _STATUSES:
        count = row.places.get(status, 0)
        start, end = 100 * before / total, 100 * (before + count) / total
        bars.append(Bar(start, end, status, f"{label}: {count} of {total} cells {status}"))
        before += count
    return bars


def _penalties(label: str, row: Row) -> list[Mark]:
    return [
        Mark(points, kind, f"{label}: {points:.2f} ({words}), rank {row.rank_under.get(one) or '–'}")
        for one, (kind, words) in reversed(list(_PENALTIES.items()))
        if (points := row.under[one]) is not None
    ]


def _between(label: str, row: Row) -> list[Bar]:
    known = [points for points in row.under.values() if points is not None]
    return [Bar(min(known), max(known), "span", f"{label}: {min(known):.2f} to {max(known):.2f}")]


def _change(row: Row) -> str:
    ranks = [rank for one in _PENALTIES if (rank := row.rank_under.get(one)) is not None]
    if row.rank is None or not ranks:
        return "–"
    return str(row.rank) if len(set(ranks)) == 1 else f"{row.rank} ({min(ranks)}–{max(ranks)})"
