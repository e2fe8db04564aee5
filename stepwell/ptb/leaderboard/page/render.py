"""Leaderboards as one HTML file that needs no network, reads without a script, and prints."""

from collections.abc import Sequence
from html import escape
from importlib import resources

from stepwell.ptb.leaderboard.board import Board
from stepwell.ptb.leaderboard.page.naming import Named, named, row_names
from stepwell.ptb.leaderboard.page.plots import mixture_plot, part_plot, penalty_plot, ranking_plot
from stepwell.ptb.leaderboard.page.row_plot import RowPlot
from stepwell.ptb.leaderboard.page.tables import (
    ablations_table,
    basis_table,
    cells_tables,
    configurations_table,
    parts_table,
    ranking_table,
    standing_table,
)
from stepwell.report.document import document

TITLE = "PostTrainBench leaderboard"


def render_leaderboard(boards: Sequence[Board]) -> str:
    """The page: a part for each comparability key."""
    style = resources.files("stepwell.ptb.leaderboard.page").joinpath("page.css").read_text(encoding="utf-8")
    header = f"<h1>{TITLE}</h1>{_lead(boards)}"
    main = "".join(_board(board, f"b{number}") for number, board in enumerate(boards))
    return document(TITLE, header=header, main=main, footer=_footer(boards), style=style)


def _lead(boards: Sequence[Board]) -> str:
    if not boards:
        return '<p class="lead">No agent has results yet.</p>'
    if len(boards) == 1:
        return f'<p class="lead">{_scope(boards[0])}</p>'
    return (
        f'<p class="outcome">{len(boards)} comparability keys: their scores must not be compared with each other.</p>'
    )


def _scope(board: Board) -> str:
    of = board.basis
    return escape(
        f"Regime {of.regime}, {len(of.base_models)} base models, {len(of.weights)} benchmarks, {of.hours:g} hours and "
        f"{of.gpus} {'GPU' if of.gpus == 1 else 'GPUs'} a trial"
    )


def _board(board: Board, name: str) -> str:
    names = row_names([*board.rows, *board.ablations])
    ranked, ablations = named(board.rows, names), named(board.ablations, names)
    return (
        f'<section class="board"><h2>{escape(board.basis.regime)} '
        f'<span class="soft mono">{board.key[:12]}</span></h2>{_numbers(board)}{_notes(board)}'
        f"{_ranking(board, ranked, ablations, name)}{_standing([*ranked, *ablations], name)}"
        f"{_parts(board, ranked, ablations, name)}{_details(board, [*ranked, *ablations])}</section>"
    )


def _numbers(board: Board) -> str:
    """The figures that a reader looks for first."""
    boxes = [_first(board)]
    boxes.append(("Base models", f"{board.base:.2f}", f"from {board.base_from}"))
    if board.few_shot is not None:
        boxes.append(("Asked with examples", f"{board.few_shot:.2f}", "few-shot base"))
    if board.instruct is not None:
        boxes.append(("Publishers' instruct models", f"{board.instruct:.2f}", "weighted points"))
    runs = sum(row.score.n for row in board.rows)
    few = sum(row.insufficient for row in board.rows)
    boxes.append(("Runs", str(runs), f"{few} of {len(board.rows)} rows have fewer than five"))
    cells = "".join(
        f"<div><dt>{escape(title)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for title, value, note in boxes
    )
    return f'<dl class="numbers">{cells}</dl>'


def _first(board: Board) -> tuple[str, str, str]:
    if not board.rows:
        return "First", "–", "no row is ranked"
    first = board.rows[0]
    tied = sum(row.tie_group == 1 for row in board.rows) - 1
    note = f"{first.score.mean:.2f} points"
    note += f", {tied} more {'is' if tied == 1 else 'are'} not told apart" if tied else ""
    return "First", first.configuration.agent, note


def _notes(board: Board) -> str:
    said = [
        f"Left out until scored: {each.agent}, run-set {each.run_set}: {', '.join(each.cells)}."
        for each in board.waiting
    ]
    said += [f"{warning[0].upper()}{warning[1:]}." for warning in board.warnings]
    if not said:
        return ""
    return f'<ul class="notes">{"".join(f"<li>{escape(each)}</li>" for each in said)}</ul>'


def _ranking(board: Board, ranked: Named, ablations: Named, name: str) -> str:
    plots: list[RowPlot] = []
    tables = ""
    if ranked:
        plots.append(ranking_plot(board, ranked, f"{name}-ranking", "Ranking"))
        tables += (
            f'<div class="panel under">{ranking_table(ranked)}'
            "<p class='soft'>Ranks that the runs do not exclude stand under <em>may be</em>: Welch's test at 5 %, pair "
            "by pair. Under five runs a mean is insufficient.</p></div>"
        )
    if ablations:
        plots.append(ranking_plot(board, ablations, f"{name}-ablations", "Ablations, not ranked"))
        tables += f'<div class="panel under">{ablations_table(ablations)}</div>'
    return f'<h3>Ranking</h3><div class="charts">{_figures(plots)}</div>{tables}'


def _standing(rows: Named, name: str) -> str:
    ranked = [(label, row) for label, row in rows if row.rank is not None]
    plots = [mixture_plot(rows, f"{name}-mixture")]
    plots += [penalty_plot(ranked, f"{name}-penalty")] if ranked else []
    return (
        f'<h3>What the means stand on</h3><div class="charts">{_figures(plots)}</div>'
        f'<div class="panel under">{standing_table(rows)}</div>'
    )


def _parts(board: Board, ranked: Named, ablations: Named, name: str) -> str:
    found: list[str] = []
    for title, of_model, places in (
        ("By benchmark", False, sorted(board.basis.weights)),
        ("By base model", True, list(board.basis.base_models)),
    ):
        part = "model" if of_model else "benchmark"
        plots = [
            part_plot(ranked or ablations, place, f"{name}-{part}-{number}", of_model=of_model)
            for number, place in enumerate(places)
        ]
        found.append(
            f'<h3>{title}</h3><p class="soft">Means with their 95 % intervals, and arrows where these go on; a hollow '
            f'mark stands for fewer than five runs.</p><div class="charts">{_figures(plots)}</div>'
            f'<div class="panel under">{parts_table([*ranked, *ablations], places, of_model=of_model)}'
            "<p class='soft'>Mean, and gain over the base model.</p></div>"
        )
    return "".join(found)


def _details(board: Board, rows: Named) -> str:
    return (
        "<h3>Details</h3>"
        f"<details><summary>What was run</summary>{configurations_table(rows)}</details>"
        f"<details><summary>What all scores share</summary>{basis_table(board)}</details>"
        f'<details class="cells-of"><summary>Every cell</summary>{cells_tables(rows)}</details>'
    )


def _figures(plots: Sequence[RowPlot]) -> str:
    return "".join(plot.figure() for plot in plots)


def _footer(boards: Sequence[Board]) -> str:
    keys = ", ".join(f'<span class="mono">{board.key}</span>' for board in boards)
    said = f" Comparability keys: {keys}." if boards else ""
    return f"<p>Written by Stepwell from files of results.{said}</p>"
