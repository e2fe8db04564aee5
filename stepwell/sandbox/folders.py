"""Private folders of live processes: named after their owner, removed when it is gone."""

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
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


@contextmanager
def temporary_folder(prefix: str) -> Generator[Path]:
    """A folder of this user's alone in the machine's temporary folder, while the block runs.

    Args:
        prefix: Its name goes on with its owner's, so that `left_by_the_dead` finds it if this process is killed.

    Raises:
        OSError: it cannot be made, or not be removed.
    """
    folder = Path(tempfile.gettempdir()) / f"{prefix}{owner_name()}-{next(_number)}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        remove_tree(folder)


def left_by_the_dead(root: Path, prefix: str = "") -> list[Path]:
    """This user's folders under `root` whose names are `prefix` and a dead owner's. Links are none."""
    found = sorted(root.glob(f"{prefix}*")) if root.is_dir() else []
    dead = [path for path in found if owner_is_dead(path.name.removeprefix(prefix))]
    return [path for path in dead if path.lstat().st_uid == os.geteuid() and not path.is_symlink()]


def sweep(root: Path) -> list[Path]:
    """Removes the folders under `root` whose owners are dead; gives what it removed. Other names are left alone."""
    removed = left_by_the_dead(root)
    for folder in removed:
        remove_tree(folder)
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
