"""What a person is asked who looks at a scored answer."""

import json

from stepwell.ptb.review.sample import Unit


def asked_line(unit: Unit) -> str:
    """A line of a record with all that there is to judge by; who looks at it completes `score_is_right`, `reason` and
    `by`."""
    cell, outcome = unit.trial.cell, unit.outcome
    shown = {
        "benchmark": cell.benchmark,
        "base_model": cell.base_model,
        "trial": cell.trial,
        "item": outcome.item,
        "seed": outcome.seed,
        "question": outcome.question,
        "gold": outcome.gold,
        "answer": outcome.answer,
        "worth": outcome.worth,
        "why": outcome.why,
    }
    empty = {"kind": "audited", "unit": unit.id, "score_is_right": None, "reason": "", "by": ""}
    return json.dumps({**empty, "shown": shown}, ensure_ascii=False) + "\n"
