"""Plain lines, for a log file or a pipe."""

import time
from collections.abc import Callable

from rich.console import Console

from cli.live.lines import Lines
from cli.live.waits import Wait, waits
from cli.live.words import duration
from stepwell.contracts.run import Progress
from stepwell.report.picture import RunPicture

QUIET_S = 30.0
"""After such a silence a line says what the run waits for."""
AGAIN_S = 600.0
"""Only after such a silence it says the same again."""


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
        self._silent = ""
        self._last_said = ""

    def update(self, picture: RunPicture, progress: Progress | None, silence: str = "") -> None:
        """Prints what is new, or after a long silence what the run waits for."""
        if self._ui_url:
            self.message(f"Temporal UI: {self._ui_url}")
            self._ui_url = ""
        for line in self._lines.new(picture):
            self.message(line)
        self._hear(silence, picture.finished is not None)
        self._after_a_silence(picture, progress, waits(picture, progress, silence))

    def _hear(self, silence: str, is_over: bool) -> None:
        """Says once why the workflow does not answer, and once that it does again."""
        who = silence.partition(":")[0]
        if who != self._silent and not is_over:
            self.message(silence or "the run's workflow answers again")
            self._silent = who

    def _after_a_silence(self, picture: RunPicture, progress: Progress | None, held: list[Wait]) -> None:
        """What holds the run up was told when it began; what it works on is told again as soon as that differs."""
        said = _goes_on(picture, progress) if not held else "  ".join(wait.line for wait in held)
        is_new = not held and said != self._last_said
        if self._clock() - self._spoke_s >= (QUIET_S if is_new else AGAIN_S):
            self.message(said)
            self._last_said = said

    def message(self, text: str) -> None:
        """Prints a line."""
        self._console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)
        self._spoke_s = self._clock()

    def close(self) -> None:
        """Nothing is held."""


def _goes_on(picture: RunPicture, progress: Progress | None) -> str:
    parts = [
        f"waits for {progress.waiting_for}" if progress else "goes on",
        f"{picture.rollouts.in_flight} rollouts in flight",
        f"{picture.rollouts.tokens.total:,} tokens so far",
    ]
    eta_s = picture.eta_s()
    return "  ".join(parts if eta_s is None else [*parts, f"at most {duration(eta_s)} left"])
