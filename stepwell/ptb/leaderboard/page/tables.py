"""A leaderboard's tables, as HTML: the plots for those who read numbers, and what is in no plot."""

from collections.abc import Sequence
from html import escape

from stepwell.ptb.leaderboard.board import Board, Part, Row
from stepwell.ptb.leaderboard.page.naming import Named, limits_of, scaffold_of
from stepwell.report.tables import listing, table


def ranking_table(rows: Named) -> str:
    """Ranks, means and intervals."""
    head = ["agent", "rank", "may be", "tie group", "mean", "± sd", "95 %", "n", "gain", ""]
    cells = [
        [
            name,
            _whole(row.rank),
            "–" if row.ranks is None else f"{row.ranks[0]} – {row.ranks[1]}",
            _whole(row.tie_group),
            *_score(row),
        ]
        for name, row in rows
    ]
    return table("", head, cells)


def ablations_table(rows: Named) -> str:
    """Rows that are not ranked, with what they differ in."""
    head = ["agent", "differs", "mean", "± sd", "95 %", "n", "gain", ""]
    cells = [[name, "; ".join(row.differs_from_basis), *_score(row)] for name, row in rows]
    return table("", head, cells)


def configurations_table(rows: Named) -> str:
    """What was run."""
    cells = [
        [
            name,
            row.configuration.model,
            scaffold_of(row.configuration),
            row.configuration.effort or "–",
            limits_of(row.configuration),
        ]
        for name, row in rows
    ]
    return listing("", ["agent", "model", "scaffold", "effort", "limits"], cells)


def standing_table(rows: Named) -> str:
    """What means are mixtures of, and what other penalties would make of them."""
    statuses = ("clean", "flagged", "failed", "missing")
    head = ["agent", *statuses, "imputed", "as scored", "if 0", "rank", "if left out", "rank"]
    cells = [
        [
            name,
            *(str(row.places.get(status, 0)) for status in statuses),
            f"{row.imputed_share:.1%}",
            _points(row.raw_score),
            _points(row.under["zero"]),
            _whole(row.rank_under.get("zero")),
            _points(row.under["drop"]),
            _whole(row.rank_under.get("drop")),
        ]
        for name, row in rows
    ]
    return table("", head, cells)


def parts_table(rows: Named, places: Sequence[str], *, of_model: bool) -> str:
    """Mean and gain over base on each base model, or on each benchmark."""
    head = ["agent", *(place.rpartition("/")[2] if of_model else place for place in places)]
    cells = [
        [name, *(_part((row.by_base_model if of_model else row.by_benchmark)[place]) for place in places)]
        for name, row in rows
    ]
    return table("", head, cells)


def cells_tables(rows: Named) -> str:
    """Every cell: raw score, flags and what is imputed in columns of their own."""
    head = ["run-set", "base model", "benchmark", "status", "raw", "flags", "imputed", "counted", "tokens"]
    found: list[str] = []
    for name, row in rows:
        cells = [
            [
                *(cell.run_set, cell.base_model, cell.benchmark, cell.status, _points(cell.raw)),
                ", ".join(cell.flags) or "–",
                *(_points(cell.imputed), _points(cell.counted), _whole(cell.max_tokens)),
            ]
            for cell in row.cells
        ]
        found.append(f"<details><summary>{escape(name)}</summary>{table('', head, cells)}</details>")
    return "".join(found)


def basis_table(board: Board) -> str:
    """What all scores of the board share."""
    of = board.basis
    lines = [
        ["comparability key", board.key],
        ["regime", of.regime],
        ["rules", of.rules],
        ["time and GPUs of a trial", f"{of.hours:g} h, {of.gpus}"],
        ["seeds", ", ".join(map(str, of.seeds)) or "none fixed"],
        ["environment", of.environment],
        ["judge of answers", of.judge or "none"],
        ["checks", ", ".join(of.checks) or "none named"],
        *([f"weight of {name}", f"{weight:.6f}"] for name, weight in sorted(of.weights.items())),
        *([f"scorer of {name}", version] for name, version in sorted(of.scorers.items())),
        *([f"files of {name}", digest] for name, digest in sorted(of.data.items())),
        *([f"template of {model}", digest] for model, digest in of.templates.items()),
    ]
    return listing("", ["what", "which"], lines)


def _score(row: Row) -> list[str]:
    score = row.score
    interval = "–" if score.low is None or score.high is None else f"{score.low:.2f} – {score.high:.2f}"
    few = "insufficient" if row.insufficient else ""
    return [f"{score.mean:.2f}", _points(score.deviation), interval, str(score.n), f"{row.gain:+.2f}", few]


def _part(part: Part) -> str:
    return f"{part.score.mean:.1f} ({part.gain:+.1f})"


def _points(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _whole(value: int | None) -> str:
    return "–" if value is None else str(value)
