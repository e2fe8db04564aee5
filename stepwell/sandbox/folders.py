"""Private folders of live processes: named after their owner, removed when it is gone."""

import itertools
import os
import re
import shutil
from pathlib import Path

_OWNED = re.compile(r"(?P<pid>\d+)-(?P<start>\d+)-\d+")
_number = itertools.count()


def owner_name() -> str:
    """This process by its id and start time: what names of that it owns begin with, before `-` and a number."""
    return f"{os.getpid()}-{_start_of(os.getpid())}"


def owner_is_dead(name: str) -> bool:
    """Whether a name says whose the thing is, and that process is gone."""
    owner = _OWNED.fullmatch(name)
    return owner is not None and _start_of(int(owner["pid"])) != int(owner["start"])


def make_owned_folder(root: Path) -> Path:
    """A fresh folder under `root` that names this process by its id and start time.

    Raises:
        OSError: it cannot be made.
    """
    root.mkdir(parents=True, exist_ok=True)
    folder = root / f"{owner_name()}-{next(_number)}"
    folder.mkdir(mode=0o755)
    return folder


def sweep(root: Path) -> list[Path]:
    """Removes the folders under `root` whose owners are dead; gives what it removed. Other names are left alone."""
    if not root.is_dir():
        return []
    removed: list[Path] = []
    for folder in sorted(root.iterdir()):
        if owner_is_dead(folder.name):
            remove_tree(folder)
            removed.append(folder)
    return removed


def remove_tree(folder: Path) -> None:
    """Removes a folder that somebody hostile may have filled: links are not followed, folders without permissions are
    opened up, and depth beyond what a path can name is flattened as it goes. No error if it is not there.

    Raises:
        OSError: something in it cannot be removed.
    """
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        _remove_hostile(folder)


def _remove_hostile(folder: Path) -> None:
    """Moves every folder inside directly under `folder` before it is emptied, so that no path is ever long."""
    numbers = itertools.count()
    pending = [folder]
    while pending:
        current = pending.pop()
        current.chmod(0o700)
        for entry in list(os.scandir(current)):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)  # Moving a folder writes to it.
                moved = folder / f".removing-{next(numbers)}"
                os.rename(entry.path, moved)
                pending.append(moved)
            else:
                os.unlink(entry.path)
        if current != folder:
            current.rmdir()
    folder.rmdir()


def _start_of(pid: int) -> int:
    """Start time of a process in clock ticks since boot; -1 if there is none."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return -1
    return int(status.rpartition(")")[2].split()[19])
