"""A leaderboard as tables for a terminal."""

import shutil
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from stepwell.ptb.leaderboard import Board, Row
from stepwell.ptb.leaderboard.board import Part
from stepwell.ptb.leaderboard.statistics import Spread

WIDTH = 150
"""Columns of a table that is not printed to a terminal."""
LEAST_WIDTH = 100


def print_board(board: Board, *, cells: bool, console: Console | None = None) -> None:
    """Prints one board.

    Args:
        board: The board.
        cells: Whether to list each cell too.
        console: Where to; standard output if none is given.
    """
    out = console or Console(highlight=False, soft_wrap=False, width=_width())
    out.print(f"[bold]{board.basis.regime}[/bold]  comparability key {board.key[:12]}", soft_wrap=True)
    out.print(_references(board), soft_wrap=True, markup=False)
    if board.rows:
        out.print(_ranking(board.rows))
        out.print(_standing(board.rows))
    if board.ablations:
        out.print(_ablations(board.ablations))
    rows = [*board.rows, *board.ablations]
    if rows:
        out.print(_parts("By benchmark: mean, and gain over base", rows, sorted(board.basis.weights), of_model=False))
        out.print(_parts("By base model: mean, and gain over base", rows, board.basis.base_models, of_model=True))
    for row in rows if cells else []:
        out.print(_cells(row))
    for waiting in board.waiting:
        out.print(
            f"left out until scored: {waiting.agent}, run-set {waiting.run_set}: {', '.join(waiting.cells)}",
            soft_wrap=True,
            markup=False,
        )
    for warning in board.warnings:
        out.print(f"note: {warning}", soft_wrap=True, markup=False)
    out.print()


def _width() -> int:
    return max(LEAST_WIDTH, shutil.get_terminal_size((WIDTH, 40)).columns)


def _references(board: Board) -> str:
    said = [f"base {board.base:.2f} (from {board.base_from})"]
    said += [f"few-shot base {board.few_shot:.2f}"] if board.few_shot is not None else []
    said += [f"instruct {board.instruct:.2f}"] if board.instruct is not None else []
    return "weighted points: " + ", ".join(said)


def _ranking(rows: Sequence[Row]) -> Table:
    table = _table("Ranking", "rank", "may be", "tie", *_WHO, "mean", "± sd", "95 %", "n", "gain", "")
    for row in rows:
        ranks = "" if row.ranks is None else f"{row.ranks[0]}–{row.ranks[1]}"
        table.add_row(str(row.rank), ranks, str(row.tie_group), *_who(row), *_score(row))
    return table


def _ablations(rows: Sequence[Row]) -> Table:
    table = _table("Ablations, not ranked", "differs", *_WHO, "mean", "± sd", "95 %", "n", "gain", "")
    for row in rows:
        table.add_row("; ".join(row.differs_from_basis), *_who(row), *_score(row))
    return table


def _standing(rows: Sequence[Row]) -> Table:
    """What the means are mixtures of, and what becomes of them and of the ranks under other penalties."""
    columns = ("clean", "flagged", "failed", "missing", "imputed weight", "as scored")
    table = _table("What the means stand on", *_WHO, *columns, "flagged count 0", "flagged left out")
    for row in rows:
        counts = [str(row.places.get(status, 0)) for status in ("clean", "flagged", "failed", "missing")]
        under = [f"{_points(row.under[one])} (rank {row.rank_under[one] or '–'})" for one in ("zero", "drop")]
        table.add_row(*_who(row), *counts, f"{row.imputed_share:.1%}", _points(row.raw_score), *under)
    return table


def _parts(title: str, rows: Sequence[Row], names: Sequence[str], *, of_model: bool) -> Table:
    table = _table(title, *_WHO, *(name.rpartition("/")[2] for name in names))
    for row in rows:
        parts = row.by_base_model if of_model else row.by_benchmark
        table.add_row(*_who(row), *(_part(parts[name]) for name in names))
    return table


def _cells(row: Row) -> Table:
    columns = ("run-set", "base model", "benchmark", "status", "raw", "flags", "imputed", "tokens")
    table = _table(f"Cells of {row.configuration.agent}", *columns)
    for cell in row.cells:
        tokens = "" if cell.max_tokens is None else str(cell.max_tokens)
        numbers = (_points(cell.raw), ", ".join(cell.flags), _points(cell.imputed), tokens)
        table.add_row(cell.run_set, cell.base_model, cell.benchmark, cell.status, *numbers)
    return table


_WHO = ("agent", "scaffold", "effort", "hours")


def _who(row: Row) -> tuple[str, str, str, str]:
    of = row.configuration
    scaffold = f"{of.scaffold} {of.scaffold_version}" + (", told to go on" if of.reprompt else "")
    return (of.agent, scaffold, of.effort or "–", f"{of.hours:g}")


def _score(row: Row) -> tuple[str, str, str, str, str, str]:
    spread = row.score
    return (
        _points(spread.mean),
        _points(spread.deviation),
        _interval(spread),
        str(spread.n),
        f"{row.gain:+.2f}",
        "insufficient" if row.insufficient else "",
    )


def _interval(spread: Spread) -> str:
    return "–" if spread.low is None or spread.high is None else f"{spread.low:.2f} to {spread.high:.2f}"


def _part(part: Part) -> str:
    return f"{part.score.mean:.1f} ({part.gain:+.1f})"


def _points(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        numeric = column in ("rank", "tie", "mean", "± sd", "n", "gain", "hours", "raw", "imputed", "tokens")
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    return table
