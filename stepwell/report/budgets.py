"""What was used against the limits that were in force, as a table."""

from stepwell.health.usage import MEASURES, amount_words
from stepwell.report.picture import RunPicture
from stepwell.report.tables import listing

_NAMES = {
    "steps": "steps",
    "hours": "hours, pauses included",
    "gpu_hours": "GPU-hours",
    "generated_tokens": "generated tokens",
    "sandbox_minutes": "sandbox-minutes",
}


def budgets_table(picture: RunPicture) -> str:
    """Each measure with its limit, if it has one: the recipe's, or the one that an operator set."""
    usage, limits = picture.standing.usage, picture.limits
    amounts: dict[str, float | None] = {"steps": float(len(picture.done_steps))}
    amounts |= {name: None if usage is None else measure.of(usage) for name, measure in MEASURES.items()}
    rows = [
        _row(name, amount, limits.get(name), name in picture.standing.operators.limits)
        for name, amount in amounts.items()
    ]
    head = ["measure", "used", "limit in force", "share", "set by"]
    note = "" if usage else "<p class='soft'>No usage was recorded: nothing watched the run for a minute.</p>"
    return listing("", head, rows) + note


def _row(name: str, amount: float | None, limit: float | None, is_moved: bool) -> list[str]:
    share = f"{amount / limit:.0%}" if amount is not None and limit else "–"
    by = "an operator" if is_moved else "–" if limit is None else "the recipe"
    used = "–" if amount is None else amount_words(amount)
    return [_NAMES[name], used, "–" if limit is None else amount_words(limit), share, by]
