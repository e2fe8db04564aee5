"""Plain lines, for a log file or a pipe."""

import time
from collections.abc import Callable

from rich.console import Console

from cli.live.lines import Lines
from cli.live.words import duration
from stepwell.contracts.run import Progress
from stepwell.report.picture import RunPicture

QUIET_S = 30.0
"""Longest silence: after it a line says what the run waits for."""


class PlainView:
    """Prints each line once; nothing is ever overwritten.

    Args:
        console: Where lines go.
        ui_url: Address of the Temporal UI, printed once.
        clock: Seconds that only grow; measures the silence.
    """

    def __init__(self, console: Console, *, ui_url: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._ui_url = ui_url
        self._clock = clock
        self._lines = Lines()
        self._spoke_s = clock()

    def update(self, picture: RunPicture, progress: Progress | None) -> None:
        """Prints what is new, or after a long silence what the run waits for."""
        if self._ui_url:
            self.message(f"Temporal UI: {self._ui_url}")
            self._ui_url = ""
        for line in self._lines.new(picture):
            self.message(line)
        if self._clock() - self._spoke_s >= QUIET_S:
            self.message(_waiting(picture, progress))

    def message(self, text: str) -> None:
        """Prints a line."""
        self._console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)
        self._spoke_s = self._clock()

    def close(self) -> None:
        """Nothing is held."""


def _waiting(picture: RunPicture, progress: Progress | None) -> str:
    parts = [
        f"waits for {progress.waiting_for}" if progress else "goes on",
        f"{picture.rollouts.in_flight} rollouts in flight",
        f"{picture.rollouts.tokens.total:,} tokens so far",
    ]
    eta_s = picture.eta_s()
    return "  ".join(parts if eta_s is None else [*parts, f"at most {duration(eta_s)} left"])
