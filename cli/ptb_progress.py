"""What a run set does now: a line for each change, and on a terminal a table under them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table

from cli.live.words import duration
from cli.ptb_reading import RunSetPicture, TrialLine
from stepwell.ptb.trials.fold import Phase

SHOWN = 12
"""Trials under way that the table shows."""
UNDER_WAY: tuple[Phase, ...] = ("preparing", "working", "checking", "judging", "scoring")


class RunSetView:
    """Shows a run set as it goes; close it, or the cursor stays hidden.

    Args:
        console: Where to; a table is drawn only on a terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said: dict[str, str] = {}
        self._live: Live | None = None

    def update(self, picture: RunSetPicture) -> None:
        """Prints what changed since the last time, and draws the table anew."""
        for trial in picture.trials:
            said = line_of(trial)
            if said and self._said.get(trial.cell) != said:
                self._said[trial.cell] = said
                self.message(said)
        if self._console.is_terminal:
            table = table_of(picture, datetime.now(UTC))
            if self._live is None:
                self._live = Live(table, console=self._console, auto_refresh=False, transient=True)
                self._live.start(refresh=True)
            else:
                self._live.update(table, refresh=True)

    def message(self, text: str) -> None:
        """Prints a line."""
        self._console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def close(self) -> None:
        """Takes the table away and shows the cursor."""
        if self._live is not None:
            self._live.stop()


def line_of(trial: TrialLine) -> str:
    """What a trial does or came to, in a line; empty of one that waits."""
    fold = trial.fold
    if fold is None or trial.phase == "waiting":
        return ""
    started = f" (start {fold.epoch + 1})" if fold.epoch else ""
    if trial.record is None:
        return f"{trial.cell}: {trial.phase}{started}"
    return f"{trial.cell}: {result_of(trial)}{started}"


def result_of(trial: TrialLine) -> str:
    """What came of a trial, in words; empty if nothing has yet."""
    record = trial.record
    if record is None:
        return ""
    points = "no score" if record.raw is None else f"{record.raw:.2f} points"
    flags = ", ".join(f"{flag.check}: {flag.reason}" for flag in record.flags)
    undecided = ", ".join(record.undecided)
    more = [
        *([record.failure] if record.failure else []),
        *([f"flagged: {flags}"] if flags else []),
        *([f"undecided: {undecided}"] if undecided else []),
    ]
    return "; ".join([f"{record.status}, {points}", *more])


def summary(picture: RunSetPicture) -> str:
    """Counts, in a line."""
    return ", ".join(f"{count} {phase}" for phase, count in sorted(picture.counts().items()))


def table_of(picture: RunSetPicture, now: datetime) -> Table:
    """Counts and the trials under way.

    Args:
        picture: Of the run set.
        now: For how long a trial has been at what it does.
    """
    table = Table(title=f"{picture.name}: {summary(picture)}", box=box.SIMPLE_HEAD, title_justify="left")
    for column in ("trial", "phase", "for", "start"):
        table.add_column(column, overflow="fold")
    shown = [trial for trial in picture.trials if trial.phase in UNDER_WAY]
    for trial in shown[:SHOWN]:
        assert trial.fold is not None
        assert trial.since is not None
        for_s = max(0.0, (now - trial.since).total_seconds())
        table.add_row(trial.cell, trial.phase, duration(for_s), str(trial.fold.epoch + 1))
    if len(shown) > SHOWN:
        table.add_row(f"and {len(shown) - SHOWN} more", "", "", "")
    return table


def as_json(picture: RunSetPicture) -> Mapping[str, object]:
    """All that is shown, for programs."""
    return {
        "run_set": picture.name,
        "finished": picture.finished,
        "counts": picture.counts(),
        "trials": [
            {
                "cell": trial.cell,
                "phase": trial.phase,
                "starts": 0 if trial.fold is None else trial.fold.epoch + 1,
                "since": None if trial.since is None else trial.since.isoformat(),
                "result": result_of(trial),
            }
            for trial in picture.trials
        ],
    }
