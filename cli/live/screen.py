"""The view for a terminal: lines that stay scroll by, and under them a panel says what goes on now."""

import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.live.lines import Lines
from cli.live.waits import Wait, waits
from cli.live.words import duration, number, sparkline
from stepwell.contracts.run import Progress
from stepwell.health.usage import usage_words
from stepwell.report.picture import RunPicture

_WORKERS = 8
"""Workers shown, those heard of last."""
_QUIET_S = 30.0
"""A worker that was not heard of for so long is shown dim."""


class ScreenView:
    """Draws over its own panel; close it, or the cursor stays hidden.

    Args:
        console: A terminal.
        ui_url: Address of the Temporal UI.
        clock: Seconds since the epoch, for ages.
    """

    def __init__(self, console: Console, *, ui_url: str = "", clock: Callable[[], float] = time.time) -> None:
        self._console = console
        self._ui_url = ui_url
        self._clock = clock
        self._lines = Lines()
        self._live: Live | None = None

    def update(self, picture: RunPicture, progress: Progress | None, silence: str = "") -> None:
        """Prints what is new, and draws the panel anew."""
        for line in self._lines.new(picture):
            self.message(line)
        panel = panel_of(picture, progress, self._ui_url, self._clock(), silence=silence)
        if self._live is None:
            self._live = Live(panel, console=self._console, auto_refresh=False, transient=True)
            self._live.start(refresh=True)
        else:
            self._live.update(panel, refresh=True)

    def message(self, text: str) -> None:
        """Prints a line above the panel."""
        self._console.print(text, markup=False, highlight=False, emoji=False)

    def close(self) -> None:
        """Takes the panel away and shows the cursor."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def panel_of(picture: RunPicture, progress: Progress | None, ui_url: str, now_s: float, *, silence: str = "") -> Panel:
    """What goes on now, and what holds it up."""
    now_s = max(now_s, picture.newest_s or now_s)
    facts = Table.grid(padding=(0, 2), expand=True)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(ratio=1)
    held = waits(picture, progress, silence)
    for name, value in [*_facts(picture, progress, ui_url, now_s), *_waits(picture, progress, held)]:
        facts.add_row(name, value)
    parts = [facts, Text(), _workers(picture, now_s)]
    state = progress.state if progress else _state(picture, held)
    title = Text.assemble((picture.run, "bold"), "  ", (state, "yellow" if held else "green"))
    return Panel(Group(*parts), title=title, title_align="left", border_style="dim", padding=(0, 1))


def _facts(picture: RunPicture, progress: Progress | None, ui_url: str, now_s: float) -> list[tuple[str, Text | Table]]:
    done, rollouts = picture.done_steps, picture.rollouts
    rewards = [step.reward_mean for step in done if step.reward_mean is not None]
    facts: list[tuple[str, Text | Table]] = [("step", _step_bar(picture))]
    facts.append(("version", Text(f"{_version(picture.version)} newest, {_version(picture.served)} served")))
    if rewards:
        line = Text.assemble((f"{rewards[-1]:.3f}  ", "bold"), (sparkline(rewards, 48), "cyan"))
        facts.append(("reward", line))
    if picture.results("main"):
        facts.append(("pass@k", _passes(picture)))
    if done:
        bound = picture.mismatch_bound
        above = bound is not None and (done[-1].mismatch_mean or 0.0) > bound
        words = f"{number(done[-1].mismatch_mean, '.1e')}" + (f"  bound {bound:.0e}" if bound else "")
        facts.append(("|Δlogp|", Text(words, style="bold red" if above else "")))
    flying = f"{rollouts.in_flight} in flight, {rollouts.grading} at their tests, {rollouts.graded:,} graded"
    facts.append(("rollouts", Text(flying)))
    rate = rollouts.tokens.recent_per_s(now_s)
    facts.append(("tokens", Text(f"{rate:,.0f} a second, {rollouts.tokens.total:,} in all")))
    split = picture.time_split()
    if split is not None:
        facts.append(("overhead", Text(f"{split.overhead:.1%} of {duration(split.wall_s)}")))
    if picture.recoveries or rollouts.failed:
        facts.append(("recoveries", Text(f"{len(picture.recoveries)}, {rollouts.failed} rollouts failed")))
    used = [usage for usage in (picture.standing.usage, progress.usage if progress else None) if usage is not None]
    if used:
        newest = max(used, key=lambda usage: usage.hours)
        facts.append(("used", Text(usage_words(newest, picture.limits))))
    if ui_url:
        facts.append(("Temporal UI", Text(ui_url, style="blue underline")))
    return facts


def _waits(picture: RunPicture, progress: Progress | None, held: list[Wait]) -> list[tuple[str, Text]]:
    """What holds the run up; while nothing does, what its workflow waits for."""
    if held:
        return [("", Text()), *(("waits", Text(wait.line, style="yellow")) for wait in held)]
    return [("waits for", Text(progress.waiting_for))] if progress else []


def _state(picture: RunPicture, held: list[Wait]) -> str:
    """By the ledger alone."""
    if picture.finished is not None:
        return "finished"
    states = {"silence": "silent", "stall": "stalled", "hold": "waiting", "pause": "paused"}
    return states[held[0].what.partition(" ")[0]] if held else "running"


def _version(version: int) -> str:
    return "none" if version < 0 else str(version)


def _step_bar(picture: RunPicture) -> Table:
    """Steps done of all, as a bar, and the time left."""
    done, total = len(picture.done_steps), picture.max_steps
    if not total:
        grid = Table.grid()
        grid.add_row(Text(str(done)))
        return grid
    eta_s = picture.eta_s()
    grid = Table.grid(padding=(0, 2))
    grid.add_row(
        Text(f"{done} of {total}", style="bold"),
        ProgressBar(total=total, completed=done, width=24),
        Text("" if eta_s is None else f"at most {duration(eta_s)} left", style="dim"),
    )
    return grid


def _passes(picture: RunPicture) -> Text:
    """Newest and best pass@k on the set `main`, against the target."""
    results = picture.results("main")
    last, best = results[-1], max(results, key=lambda result: result.pass_k or 0.0)
    target = picture.target
    reached = target is not None and (best.pass_k or 0.0) > target
    words = Text.assemble(
        (number(last.pass_k), "bold"), f" at version {last.version}, best {number(best.pass_k)} at {best.version}"
    )
    if target is not None:
        words.append(f", target {target:g}", style="green" if reached else "")
    return words


def _workers(picture: RunPicture, now_s: float) -> Table:
    """What each worker did last, and how long ago."""
    grid = Table.grid(padding=(0, 2), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    for worker in picture.workers.newest(_WORKERS):
        age_s = now_s - worker.time_s
        style = "dim" if age_s > _QUIET_S else ""
        grid.add_row(Text(worker.actor, style=style), Text(worker.last, style=style), Text(duration(age_s), "dim"))
    return grid
