"""Results of trials, made by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from stepwell.ptb.leaderboard import Basis, Cell, Configuration, Flag

MODELS = ("lab/one-base", "lab/two-base")
WEIGHTS = {"gsm8k": 0.75, "bfcl": 0.25}
BASE_POINTS = {
    ("lab/one-base", "gsm8k"): 10.0,
    ("lab/two-base", "gsm8k"): 30.0,
    ("lab/one-base", "bfcl"): 0.0,
    ("lab/two-base", "bfcl"): 4.0,
}
"""Weighted: 0.75 · 20 + 0.25 · 2 = 15.5."""


def basis(**changed: object) -> Basis:
    """A basis of two models and two benchmarks."""
    fields: dict[str, object] = {
        "regime": "by hand",
        "rules": "v1.1",
        "hours": 10.0,
        "gpus": 1,
        "base_models": MODELS,
        "weights": WEIGHTS,
        "seeds": (),
        "data": {"gsm8k": "d1", "bfcl": "d2"},
        "scorers": {"gsm8k": "number-1", "bfcl": "call-1"},
        "templates": dict.fromkeys(MODELS, "t1"),
        "environment": "image-1",
    }
    return Basis.model_validate(fields | changed)


def configuration(agent: str = "alpha", **changed: object) -> Configuration:
    """What was run."""
    fields: dict[str, object] = {
        "agent": agent,
        "model": f"{agent}-2026",
        "scaffold": "shell",
        "scaffold_version": "1",
        "hours": 10.0,
        "gpus": 1,
    }
    return Configuration.model_validate(fields | changed)


def base_cells(on: Basis) -> list[Cell]:
    """Scores of the base models."""
    return [
        Cell(
            basis=on.key,
            role="base",
            run_set="base",
            trial=f"{m}/{b}",
            base_model=m,
            benchmark=b,
            raw=BASE_POINTS[m, b],
        )
        for m in on.base_models
        for b in on.weights
    ]


def run_cells(
    on: Basis,
    of: Configuration,
    run_set: str,
    points: Mapping[tuple[str, str], float | None],
    *,
    flagged: Sequence[tuple[str, str]] = (),
    failed: Sequence[tuple[str, str]] = (),
    unscored: Sequence[tuple[str, str]] = (),
) -> list[Cell]:
    """One run over the places that have points or failed."""
    cells: list[Cell] = []
    for place in (*points, *failed, *unscored):
        model, benchmark = place
        cells.append(
            Cell(
                basis=on.key,
                configuration=of,
                run_set=run_set,
                trial=f"{of.agent}/{run_set}/{model}/{benchmark}",
                base_model=model,
                benchmark=benchmark,
                raw=points.get(place),
                flags=(Flag(check="contamination", reason="trained on test rows"),) if place in flagged else (),
                failure="no model was left" if place in failed else None,
                unscored=3 if place in unscored else 0,
            )
        )
    return cells


def everywhere(points: float) -> dict[tuple[str, str], float | None]:
    """The same points in all places."""
    return dict.fromkeys(BASE_POINTS, points)


def write_results(path: Path, *lines: Basis | Cell) -> Path:
    """A file of results."""
    path.write_text("".join(line.model_dump_json() + "\n" for line in lines), encoding="utf-8")
    return path
