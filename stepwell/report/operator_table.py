"""What operators did and what they were asked, as a table: who, when, what, why."""

from stepwell.report.picture import RunPicture
from stepwell.report.standing import act_words
from stepwell.report.tables import listing, moment

_ROWS = 200
"""Most of them listed one by one."""


def operators_table(picture: RunPicture) -> str:
    """By time; the run's own requests among them."""
    standing = picture.standing
    rows = [(time_s, act.who, act_words(act), act.reason or "–") for time_s, act in standing.acts]
    rows += [(time_s, "the run", f"an operator was asked: {each.hold}", each.cause) for time_s, each in standing.raised]
    if not rows:
        return "<p>None: no operator acted, and the run asked for none.</p>"
    told = [[moment(time_s), *words] for time_s, *words in sorted(rows)]
    more = f"<p>{len(told) - _ROWS} more are in the ledger.</p>" if len(told) > _ROWS else ""
    return listing("", ["time, UTC", "who", "what", "why"], told[:_ROWS]) + more
