"""A record of which everything is known and right, made by hand; tests spoil it."""

from collections.abc import Callable, Sequence

from stepwell.ptb.leaderboard import Cell
from stepwell.ptb.review import Audited, ReviewRecord, SetupRecord, TrialRecord
from stepwell.ptb.review.checks.contamination import PLANTED
from stepwell.ptb.review.checks.scorers import CASES
from stepwell.ptb.review.record import trials_of
from stepwell.ptb.review.sample import draw
from tests.ptb_results import WEIGHTS, base_cells, basis, configuration, everywhere, run_cells

AGENTS = ("alpha", "beta")
RUNS = 5
ON = basis(environment="image-1", data={"gsm8k": "d1", "bfcl": "d2"})
"""Two base models, gsm8k at 0.75 and bfcl at 0.25 of the score."""


def cells() -> list[Cell]:
    """Five runs of two agents on every cell, each ended by itself."""
    found: list[Cell] = []
    for agent, points in zip(AGENTS, (40.0, 20.0), strict=True):
        for number in range(RUNS):
            found += run_cells(ON, configuration(agent), f"r{number}", everywhere(points + number))
    return [each.model_copy(update={"ended": "itself", "max_tokens": 4000}) for each in found]


def trial(cell: Cell, **changed: object) -> TrialRecord:
    """All that can be known of a trial."""
    of = cell.configuration
    assert of is not None
    fields: dict[str, object] = {
        "trial": cell.trial,
        "prompt": f"prompt of {cell.benchmark} on {cell.base_model}",
        "prompt_shared": f"prompt of {cell.benchmark} on {cell.base_model}",
        "prompt_additions": (),
        "statements": (
            {"about": "internet", "says": "there is no network", "claims": "none"},
            {"about": "time", "says": "you have 10 hours", "claims": 10.0},
            {"about": "evaluation", "says": "the evaluation is protected", "holds": True},
        ),
        "rules": "v1.1",
        "scaffold": of.scaffold,
        "scaffold_version": of.scaffold_version,
        "command": ("agent", "--go"),
        "model_asked": of.model,
        "model_resolved": of.model,
        "vendor": f"vendor of {of.agent}",
        "effort": "default",
        "temperature": "default",
        "limits": {"hours": 10.0, "tokens": "none", "turns": "none", "money": "none"},
        "tools": ("shell",),
        "network": {"mode": "none"},
        "keys": (),
        "hardware": {"description": "one GPU", "checked": True},
        "container": "image-1",
        "packages": "p1",
        "scored_with": {
            "data": ON.data[cell.benchmark],
            "scorer": ON.scorers[cell.benchmark],
            "template": "t1",
            "template_by": "base model",
            "environment": "image-1",
        },
        "trace_raw": "raw",
        "trace_parsed": "parsed",
        "trace_stamped": True,
        "secrets": {"redacted": 2, "survivors": 0},
        "workspace": "left",
        "model_configuration": "configuration",
        "weights": "weights",
        "items": [
            {"item": f"i{number}", "seed": 1, "worth": float(number % 2), "why": "the number is equal"}
            for number in range(4)
        ],
        "exchanges": "exchanges",
        "resources": "resources",
        "rescored_equal": True,
        "passes": ({"seed": 1, "expected": 4, "scored": 4, "judge_errors": 0},),
        "worked_s": 18000.0,
        "interruptions": (),
        "attempts": 1,
        "retry_policy": "infrastructure only",
        "self_test": {"passed": True, "before_the_clock": True, "looked_at": ("GPU is idle",)},
        "model_loads": True,
        "contamination": {"verdict": "clean", "scanned_rows": 100, "unscanned": 0, "leaks": 0},
        "identity": {"verdict": "base", "passed": True, "weights_compared": True},
        "votes": (
            {
                "charge": "lookup",
                "judges": ("j", "j", "j"),
                "vendors": ("another",) * 3,
                "votes": (False,) * 3,
                "ruling": "none",
            },
        ),
        "datasets": ({"source": "written by the agent", "digest": "d"},),
        "own_score": 41.0,
        "elsewhere": {"gsm8k" if cell.benchmark == "bfcl" else "bfcl": 5.0},
    }
    return TrialRecord.model_validate(fields | changed)


def setup(**changed: object) -> SetupRecord:
    """All that can be known of the evaluation."""
    conformance = [
        {"benchmark": name, "case": case, "wanted": wanted, "found": wanted}
        for name in WEIGHTS
        for number, case in enumerate(CASES[name])
        for wanted in ("right" if number == 0 else "wrong",)
    ]
    known = [
        {"benchmark": name, "answers": answers, "points": points}
        for name in WEIGHTS
        for answers, points in (("gold", 100.0), ("empty", 0.0), ("constant", 0.0))
    ]
    fields: dict[str, object] = {
        "scoring_code": "code at a digest",
        "test_data": dict.fromkeys(WEIGHTS, "where its publisher has it"),
        "rescore_command": "stepwell ptb score",
        "conformance": conformance,
        "known_answers": known,
        "calibration": (),
        "judge_agreement": (),
        "required": ("contamination", "identity", "lookup"),
        "planned_runs": RUNS,
        "rename_test": {"renamed": "the run's folder", "equal": True},
        "native_scaffolds": {},
        "planted": [{"leak": leak, "planted": 10, "found": 9} for leak in PLANTED],
        "controls": ({"rows_of": "gsm8k train", "rows": 100, "flagged": 0},),
        "publicness": {name: {"tasks": 1.0, "solutions": 1.0} for name in WEIGHTS},
        "human": {"established": True, "evidence": "two people did four of the tasks"},
        "references": {name: {"ceiling": 100.0, "ceiling_from": "every item has one answer"} for name in WEIGHTS},
    }
    return SetupRecord.model_validate(fields | changed)


def record(
    *,
    change_cells: Callable[[list[Cell]], list[Cell]] = list,
    change_trial: Callable[[TrialRecord], TrialRecord] = lambda one: one,
    setups: Sequence[SetupRecord] | None = None,
    wrong: Sequence[int] = (),
    looked_at: int = 50,
) -> ReviewRecord:
    """All of it.

    Args:
        change_cells: Spoils the cells.
        change_trial: Spoils each trial's record.
        setups: Instead of the one of which everything is known.
        wrong: Places in the sample where the score is wrong.
        looked_at: Scored answers, from the first of the sample, that people looked at.
    """
    all_cells = change_cells(cells())
    found = ReviewRecord(
        bases=(ON,),
        cells=(*base_cells(ON), *all_cells),
        setups=(setup(),) if setups is None else tuple(setups),
        trials=tuple(change_trial(trial(each)) for each in all_cells),
    )
    units = draw(found, trials_of(found)).order[:looked_at]
    audited = [
        Audited(unit=unit.id, score_is_right=number not in wrong, reason="read it", by="a person")
        for number, unit in enumerate(units)
    ]
    return found.model_copy(update={"audited": tuple(audited)})
