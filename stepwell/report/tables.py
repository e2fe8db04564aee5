"""The page's tables, and its recipe."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from stepwell.report.picture import RunPicture
from stepwell.rl.passk import Estimate


def moment(time_s: float) -> str:
    """A time in UTC, to the second."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of plain text that scrolls where it is too wide; columns of numbers are set to the right."""
    numeric = [_is_numeric([row[column] for row in rows]) for column in range(len(head))]
    kinds = ['class="n"' if is_numeric else "" for is_numeric in numeric]
    cells = [[f"<td {kind}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)] for row in rows]
    return f'<div class="wide">{_table("", caption, head, kinds, cells)}</div>'


def listing(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of words, which a narrow screen shows row by row, each cell with its column's name."""
    names = [escape(name, quote=True) for name in head]
    cells = [
        [f'<td data-name="{name}">{escape(cell)}</td>' for cell, name in zip(row, names, strict=True)] for row in rows
    ]
    return _table('class="listing"', caption, head, [""] * len(head), cells)


def _table(kind: str, caption: str, head: Sequence[str], kinds: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    header = "".join(f'<th scope="col" {kind}>{escape(name)}</th>' for name, kind in zip(head, kinds, strict=True))
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table {kind}>{title}<thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def validations_table(picture: RunPicture) -> str:
    """Every validation's scores with their intervals."""
    rows = [
        [
            dataset,
            str(result.version),
            "–" if result.tasks is None else str(result.tasks),
            *_with_interval(result.pass_1, result.pass_1_interval),
            *_with_interval(result.pass_k, result.pass_k_interval),
            *_with_interval(result.pass_all, result.pass_all_interval),
        ]
        for dataset in picture.datasets
        for result in picture.results(dataset)
    ]
    if not rows:
        return "<p>No validation is recorded yet.</p>"
    k = _k(picture)
    head = ["set", "version", "tasks", "pass@1", "95 %", f"pass@{k}", "95 %", f"pass^{k}", "95 %"]
    return table("", head, rows)


def steps_table(picture: RunPicture) -> str:
    """Every step's numbers: the curves for those who read tables."""
    head = ["step", "reward", "masked", "loss", "gradient", "|Δlogp| mean", "max", "tokens", "training s", "step s"]
    rows = [
        [
            str(step.step),
            _cell(step.reward_mean, ".3f"),
            f"{step.masked or 0}",
            _cell(step.loss, "+.4f"),
            _cell(step.grad_norm, ".3f"),
            _cell(step.mismatch_mean, ".1e"),
            _cell(step.mismatch_max, ".1e"),
            f"{step.generated_tokens:,}",
            _cell(step.training_s, ".1f"),
            _cell(step.step_s, ".1f"),
        ]
        for step in picture.done_steps
    ]
    return table("", head, rows) if rows else "<p>No step is trained yet.</p>"


def recipe_lines(recipe: dict[str, Any]) -> str:
    """The resolved recipe, a key a line as `--set` takes it."""
    return "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in _flat("", recipe))


def _flat(prefix: str, recipe: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in recipe:
        value = recipe[key]
        if isinstance(value, dict) and value:
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", value


def _with_interval(value: float | None, interval: Estimate | None) -> list[str]:
    return [_cell(value, ".3f"), f"{interval.low:.3f} – {interval.high:.3f}" if interval else "–"]


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _k(picture: RunPicture) -> int:
    return next((result.k for dataset in picture.datasets for result in picture.results(dataset) if result.k), 1)


def _is_numeric(cells: Sequence[str]) -> bool:
    return any(cell != "–" for cell in cells) and all(map(_is_number, cells))


def _is_number(cell: str) -> bool:
    plain = cell.replace(" – ", "").replace(",", "").removesuffix("%").lstrip("+-").replace("e-", "").replace(".", "")
    return cell == "–" or plain.isdigit()
