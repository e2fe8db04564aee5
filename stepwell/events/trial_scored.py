"""TrialScored."""

from typing import Any, Literal

from stepwell.events.base import Event


class TrialScored(Event):
    """What came of a trial. Last event of `trial/<run set>/<cell>`; overrides are beside it."""

    type: Literal["TrialScored"] = "TrialScored"

    record: dict[str, Any]
    """The cell (`stepwell.ptb.leaderboard.records.Cell`), as the checks and judges have it."""

    def key(self) -> str:
        return "scored"
