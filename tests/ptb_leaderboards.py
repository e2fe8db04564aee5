"""Leaderboards of which a page has everything to tell, from results made by hand."""

import random

from stepwell.ptb.leaderboard import Basis, Board, Cell, make_boards
from stepwell.ptb.leaderboard.records import Results
from stepwell.ptb.regimes import regime
from stepwell.ptb.weighting import published_baselines
from tests.ptb_results import configuration, run_cells

AGENTS = ("alpha", "beta", "gamma", "delta", "epsilon", "an agent with a long name")
RUNS = (5, 5, 2, 5, 6, 1)


def full_basis(**changed: object) -> Basis:
    """The seven benchmarks and four base models of v1.0."""
    of = regime("v1.0")
    fields: dict[str, object] = {
        "regime": of.name,
        "rules": of.rules,
        "hours": of.hours,
        "gpus": 1,
        "base_models": of.base_models,
        "weights": of.weights,
        "seeds": (),
        "data": dict.fromkeys(of.weights, "d" * 64),
        "scorers": dict.fromkeys(of.weights, "scorer-1"),
        "templates": dict.fromkeys(of.base_models, "t" * 64),
        "environment": "image-1",
        "judge": "judge-1",
    }
    return Basis.model_validate(fields | changed)


def reference_cells(on: Basis, *, instruct: bool = True) -> list[Cell]:
    """The published baselines."""
    table = published_baselines()
    pairs = dict(zip(table.base, table.instruct, strict=True))
    return [
        Cell(basis=on.key, role=role, run_set=role, trial=f"{role}/{m}/{b}", base_model=m, benchmark=b, raw=points)
        for role in (("base", "instruct") if instruct else ("base",))
        for m in on.base_models
        for b in on.weights
        for points in (table.base[m][b] if role == "base" else table.instruct[pairs[m]][b],)
    ]


def full_boards(hostile: str = "epsilon") -> list[Board]:
    """Six agents with gains of their own, flagged, failed, missing and unscored cells, ablations, and another key.
    `hostile` stands wherever results have names of people's choice."""
    on, other = full_basis(), full_basis(regime=f"v1.0 {hostile}", judge=hostile)
    chance = random.Random(7)
    base = published_baselines().base
    cells = [*reference_cells(on), *reference_cells(other, instruct=False)]
    for place, (agent, runs) in enumerate(zip(AGENTS, RUNS, strict=True)):
        of = configuration(hostile if agent == "epsilon" else agent, effort="high" if place % 2 else None)
        for number in range(runs):
            points: dict[tuple[str, str], float | None] = {
                (m, b): min(100.0, base[m][b] + (6 - place) * 5 * chance.random() + 2 * place)
                for m in on.base_models
                for b in on.weights
            }
            places = list(points)
            flagged = places[: 2 * place] if place < 5 else []
            failed = [places[-1]] if place == 1 else []
            missing = [places[-2]] if place == 3 else []
            for each in (*failed, *missing):
                points.pop(each)
            cells += run_cells(on, of, f"r{number}", points, flagged=flagged, failed=failed)
    late = dict.fromkeys([(m, b) for m in on.base_models for b in on.weights][1:], 30.0)
    waits = (on.base_models[0], sorted(on.weights)[0])
    late.pop(waits, None)
    cells += run_cells(on, configuration("alpha"), "late", dict(late), unscored=[waits])
    short = configuration("alpha", hours=1.0)
    everywhere = {(m, b): base[m][b] + 3.0 for m in on.base_models for b in on.weights}
    for number in range(2):
        cells += run_cells(on, short, f"r{number}", dict(everywhere))
        cells += run_cells(other, configuration("zeta"), f"r{number}", dict(everywhere))
    results = Results({on.key: on, other.key: other}, tuple(cells))
    return sorted(make_boards(results), key=lambda board: -len(board.rows))
