"""What became of the prompts, and whether what was trained is as long as what was generated, as tables."""

from html import escape

from stepwell.events.group_closed import Fate
from stepwell.report.lengths import KS_BOUND, MEAN_BOUND, QUANTILES, Comparison, Spread
from stepwell.report.picture import RunPicture
from stepwell.report.tables import table

_ROWS = 200
"""Most causes listed one by one."""


def fates_table(picture: RunPicture) -> str:
    """What became of the prompts; each kind sums to what was dispatched."""
    rows: list[list[str]] = []
    for name, fates in (("training", picture.training_fates), ("validation", picture.validation_fates)):
        counts = [f"{fates.by_fate.get(fate, 0):,}" for fate in Fate]
        rows.append([name, *counts, f"{fates.open:,}", f"{fates.dispatched:,}", f"{fates.replaced:,}"])
    causes = [*picture.training_fates.causes, *picture.validation_fates.causes]
    why = "".join(f"<li>{escape(cause)}</li>" for cause in causes[:_ROWS])
    more = f"<p>{len(causes) - _ROWS} more are in the ledger.</p>" if len(causes) > _ROWS else ""
    head = ["prompts", *(fate.value for fate in Fate), "open", "= dispatched", "of them replacements"]
    return table("", head, rows) + (f"<ul>{why}</ul>{more}" if why else "")


def lengths_table(picture: RunPicture) -> str:
    """Rollouts with a vote against all that were generated; nothing before one has one."""
    compared = picture.lengths
    if not compared:
        return ""
    rows = [row for comparison in compared for row in _rows(comparison)]
    names = ["median" if share == 0.5 else "longest" if share == 1.0 else f"{share:.0%}" for share in QUANTILES]
    head = ["length in", "rollouts", "count", "mean", *names, "KS"]
    said = "".join(_sentence(comparison) for comparison in compared)
    bound = f"A difference of the means above {MEAN_BOUND:.0%}, or a KS statistic above {KS_BOUND:g}, is called a bias."
    return f"{table('Trained against generated', head, rows)}{said}<p class='soft'>{escape(bound)}</p>"


def _rows(compared: Comparison) -> list[list[str]]:
    return [
        [compared.unit, "with a vote", *_figures(compared.trained), f"{compared.ks:.3f}"],
        ["", "all that were generated", *_figures(compared.generated), "–"],
    ]


def _figures(spread: Spread) -> list[str]:
    return [f"{spread.count:,}", f"{spread.mean:,.1f}", *(f"{length:,}" for length in spread.quantiles)]


def _sentence(compared: Comparison) -> str:
    words = f"{compared.words()}."
    kind = "outcome bad" if compared.is_biased else "outcome"
    return f"<p class='{kind}'>{escape(words[0].upper() + words[1:])}</p>"
