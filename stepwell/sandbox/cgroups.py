"""Control groups: what the kernel holds all processes of a sandbox to together, where this process may make groups.

Version 2 needs a delegated group with the controllers `memory` and `pids` (a systemd unit with `Delegate=yes`, a
container with its own group); version 1 the two hierarchies writable, as root has them. Without either, a sandbox is
bounded by its watch alone (see `guest_init`).
"""

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepwell.sandbox.folders import owner_is_dead, owner_name

ROOT = Path("/sys/fs/cgroup")
SELF = Path("/proc/self/cgroup")
_CONTROLLERS = ("memory", "pids")
_PREFIX = "stepwell-"
_REMOVE_S = 5.0
"""How long a group may take to empty once its processes are killed."""


@dataclass(frozen=True)
class GroupLimits:
    """Bounds of a group."""

    memory_bytes: int
    """Resident memory, page cache and temporary file systems of all processes together."""
    processes: int
    """Processes and threads."""


class Cgroup:
    """The group of one sandbox: a folder in one hierarchy (version 2) or in one for each controller (version 1)."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folders)

    def add(self, *pids: int) -> None:
        """Puts processes in; those that they start from now on are in too. Takes 0.1 to 20 ms.

        Raises:
            OSError: there is no such process, or it may not be moved.
        """
        for folder in self.folders:
            for pid in pids:
                (folder / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Kills what is left inside, and removes the group. Idempotent.

        Raises:
            OSError: it does not become empty.
        """
        for folder in self.folders:
            _remove(folder)


class Cgroups:
    """Makes groups beneath this process's own.

    Args:
        parents: The folder of each hierarchy that new groups are made in.
        bounds: File that holds each bound, and the name of the bound in `GroupLimits`.
    """

    def __init__(self, parents: Sequence[Path], bounds: Mapping[str, str]) -> None:
        self._parents = tuple(parents)
        self._bounds = dict(bounds)

    @classmethod
    def find(cls, root: Path = ROOT, own: Path = SELF) -> "Cgroups | None":
        """What this process may use, found out by making a group; None without any. Removes what dead ones have left.

        Args:
            root: Where control groups are mounted.
            own: Says which groups this process is in.
        """
        places = dict(_places(own))
        for parents, bounds in _candidates(root, places):
            found = cls(parents, bounds)
            if found._works():
                found.sweep()
                return found
        return None

    def make(self, limits: GroupLimits) -> Cgroup:
        """A group for one sandbox of this process.

        Raises:
            OSError: it cannot be made.
        """
        name = f"{_PREFIX}{owner_name()}-{secrets.randbits(63)}"  # seen inside: must not say which came first
        group = Cgroup([parent / name for parent in self._parents])
        try:
            for folder in group.folders:
                folder.mkdir()
                for file, bound in self._bounds.items():
                    if (folder / file).exists():
                        (folder / file).write_text(str(getattr(limits, bound)))
        except BaseException:
            group.remove()
            raise
        return group

    def sweep(self) -> list[Path]:
        """Kills and removes what processes that are dead have left; gives the folders."""
        removed: list[Path] = []
        for parent in self._parents:
            for folder in sorted(parent.glob(f"{_PREFIX}*")):
                if owner_is_dead(folder.name.removeprefix(_PREFIX)):
                    with contextlib.suppress(OSError):  # another sweep took it, or it is not ours to take
                        _remove(folder)
                        removed.append(folder)
        return removed

    def _works(self) -> bool:
        """Whether a group can be made, and a process of ours be put in: in version 2 one may be allowed alone."""
        try:
            group = self.make(GroupLimits(memory_bytes=1 << 30, processes=64))
        except OSError:
            return False
        child = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
        try:
            group.add(child.pid)
        except OSError:
            return False
        finally:
            child.kill()
            child.wait()
            group.remove()
        return True


_V1 = {"memory.limit_in_bytes": "memory_bytes", "pids.max": "processes"}
_V2 = {"memory.max": "memory_bytes", "pids.max": "processes"}


def _candidates(root: Path, places: Mapping[str, str]) -> list[tuple[list[Path], Mapping[str, str]]]:
    """Where groups could be made: version 2 beneath the own group or beside it, then version 1."""
    found: list[tuple[list[Path], Mapping[str, str]]] = []
    if "" in places and (root / "cgroup.controllers").exists():
        own = root / places[""].lstrip("/")
        found += [([parent], _V2) for parent in (own, own.parent) if _delegates(parent)]
    if all(name in places and (root / name).is_dir() for name in _CONTROLLERS):
        found.append(([root / name / places[name].lstrip("/") for name in _CONTROLLERS], _V1))
    return found


def _delegates(parent: Path) -> bool:
    """Whether groups beneath can have both controllers, after asking for them."""
    control = parent / "cgroup.subtree_control"
    try:
        if not set(_CONTROLLERS) <= set(control.read_text().split()):
            control.write_text(" ".join(f"+{name}" for name in _CONTROLLERS))
    except OSError:  # not delegated, or with processes of its own: then its children get no controllers
        return False
    return True


def _places(own: Path) -> list[tuple[str, str]]:
    """Controller, or `` for version 2, to the path of the own group."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    parts = [line.split(":", 2) for line in lines]
    return [(name, path) for _, controllers, path in parts for name in controllers.split(",")]


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + _REMOVE_S
    while True:
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.002)
