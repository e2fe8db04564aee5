"""The agents of a home's trials, which outlive workers and commands: how all of them are ended."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from activities.trial_folders import TrialFolder
from stepwell.ptb.supervisor import end_all
from workers.services.home import Home

AT_ONCE = 64
"""Starts whose agents are ended at the same time: each may take its grace time."""


def end_agents(why: str, root: Path | None = None) -> list[Path]:
    """Ends every agent of a home, those of tests before the clock too, and waits until they are gone.

    Looks only at the folders that we make, never into what an agent can write.

    Args:
        why: Stands in their ends.
        root: The home; `$STEPWELL_HOME` or `.stepwell` by default.

    Returns:
        The folders of the supervisors that ran.

    Raises:
        OSError: a folder is another user's.
        TimeoutError: a supervisor does not even die of SIGKILL.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(partial(_end, why), _starts(Home.of(root).root / "trials")))
    return [folder for of_start in ended for folder in of_start]


def _end(why: str, start: TrialFolder) -> list[Path]:
    return end_all(start.root, why) + end_all(start.test, why)


def _starts(trials: Path) -> Iterator[TrialFolder]:
    """Every start of every trial: `<run set>/<cell>/<number of the start>`."""
    for run_set in _folders(trials):
        for cell in _folders(run_set):
            yield from map(TrialFolder, _folders(cell))


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
