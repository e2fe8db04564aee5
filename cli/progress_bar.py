"""A bar for work of which the number of parts is known: on a terminal only, and apart from what is printed."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(what: str, total: int) -> Generator[Callable[[], None]]:
    """Shows a bar for the block; what it gives tells that one more part is done.

    Args:
        what: What is being done, for example `replaying steps`.
        total: Number of parts.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
