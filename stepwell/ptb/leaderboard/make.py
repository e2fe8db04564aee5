"""From results to leaderboards, one for each comparability key."""

from collections.abc import Iterable
from statistics import fmean
from typing import Literal

from stepwell.ptb.leaderboard.board import Board, Row, Waiting
from stepwell.ptb.leaderboard.filled import RunSet, fill
from stepwell.ptb.leaderboard.records import Basis, Cell, Configuration, Results
from stepwell.ptb.leaderboard.rows import BasePoints, Entry, placed, row_of, weighted
from stepwell.ptb.weighting import published_baselines

Reference = Literal["base", "instruct", "few_shot"]


class NoBaseScore(ValueError):
    """A base model has no score on a benchmark, and every rule about cells without a clean score needs it."""


def make_boards(results: Results, *, published: bool = False) -> list[Board]:
    """A board for each comparability key that agents have results under, in the order of the keys.

    Args:
        results: All that was read.
        published: Take base models' points that the results lack from the published table, and say so. They were made
            by other scorers.

    Raises:
        NoBaseScore: which is missing.
    """
    keys = sorted({cell.basis for cell in results.cells if cell.role == "agent"})
    return [
        _board(results.bases[key], [cell for cell in results.cells if cell.basis == key], published) for key in keys
    ]


def _board(basis: Basis, cells: list[Cell], published: bool) -> Board:
    base, base_from = _base_points(basis, cells, published)
    entries, waiting = _entries(basis, cells, base)
    rows = [row_of(entry, basis, base) for entry in entries]
    ranked = sorted((row for row in rows if not row.differs_from_basis), key=lambda row: -row.score.mean)
    ablations = sorted((row for row in rows if row.differs_from_basis), key=lambda row: row.configuration.agent)
    return Board(
        key=basis.key,
        basis=basis,
        base=weighted(base, basis),
        base_from=base_from,
        instruct=_reference(basis, cells, "instruct"),
        few_shot=_reference(basis, cells, "few_shot"),
        rows=tuple(placed(ranked)),
        ablations=tuple(ablations),
        waiting=tuple(waiting),
        warnings=tuple(_warnings(rows)),
    )


def _base_points(basis: Basis, cells: Iterable[Cell], published: bool) -> tuple[BasePoints, str]:
    points = _reference_points(cells, "base")
    lacking = [(m, b) for m in basis.base_models for b in sorted(basis.weights) if (m, b) not in points]
    if not lacking:
        return points, "these results"
    table = published_baselines().base if published else {}
    still = [(model, name) for model, name in lacking if name not in table.get(model, {})]
    if still:
        model, name = still[0]
        raise NoBaseScore(
            f"{len(still)} base scores are missing under the key {basis.key[:12]}, as {model} on {name}: score the "
            "base models on this basis and add the results"
            + ("" if published else "; or take published ones with --published-baselines, which other scorers made")
        )
    filled = {(model, name): table[model][name] for model, name in lacking}
    return {**points, **filled}, f"these results, {len(filled)} of them published ones, which other scorers made"


def _reference_points(cells: Iterable[Cell], role: Reference) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        if cell.role == role and cell.raw is not None:
            found.setdefault((cell.base_model, cell.benchmark), []).append(cell.raw)
    return {place: fmean(points) for place, points in found.items()}


def _reference(basis: Basis, cells: Iterable[Cell], role: Reference) -> float | None:
    points = _reference_points(cells, role)
    if any((model, name) not in points for model in basis.base_models for name in basis.weights):
        return None
    return weighted(points, basis)


def _entries(basis: Basis, cells: Iterable[Cell], base: BasePoints) -> tuple[list[Entry], list[Waiting]]:
    grouped: dict[str, dict[str, list[Cell]]] = {}
    configurations: dict[str, Configuration] = {}
    for cell in cells:
        if cell.configuration is not None:
            configurations[cell.configuration.digest] = cell.configuration
            grouped.setdefault(cell.configuration.digest, {}).setdefault(cell.run_set, []).append(cell)
    entries: list[Entry] = []
    waiting: list[Waiting] = []
    for digest, by_run in sorted(grouped.items(), key=lambda one: (configurations[one[0]].agent, one[0])):
        runs = [fill(name, of_run, basis, base) for name, of_run in sorted(by_run.items())]
        waiting += [_waiting(configurations[digest], run) for run in runs if not run.is_scored]
        scored = tuple(run for run in runs if run.is_scored)
        if scored:
            entries.append(Entry(configurations[digest], scored))
    return entries, waiting


def _waiting(configuration: Configuration, run: RunSet) -> Waiting:
    cells = tuple(f"{place.base_model} on {place.benchmark}" for place in run.places if place.status == "unscored")
    return Waiting(agent=configuration.agent, configuration=configuration.digest, run_set=run.name, cells=cells)


def _warnings(rows: Iterable[Row]) -> list[str]:
    """What a reader must know about how the columns were made."""
    tokens: dict[str, set[int]] = {}
    for row in rows:
        for cell in row.cells:
            if cell.max_tokens is not None:
                tokens.setdefault(cell.benchmark, set()).add(cell.max_tokens)
    return [
        f"answers on {name} were scored under different limits of tokens: {sorted(limits)}"
        for name, limits in sorted(tokens.items())
        if len(limits) > 1
    ]
