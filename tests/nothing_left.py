"""After the last test nothing that the tests started or made may be left: process, mount, network or control group.

Every process that a test starts inherits a mark in its environment, unless it runs inside a sandbox, whose life hangs
on one that has it. Everything else bears the id of this process in its name, or lies in its temporary folder. What
sessions have left that were killed is removed before the first test.
"""

import os
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from stepwell.sandbox.folders import left_by_the_dead, remove_tree

MARK = "STEPWELL_STARTED_BY_TESTS"
LINGER_S = 15.0
"""A process may take so long to end once whoever it belongs to has."""

LEFT_FOLDERS = ("stepwell-test-", "stepwell-image-")
"""How the names begin of folders that a killed session leaves in the temporary folder; their owner's follow."""


def pytest_configure(config: pytest.Config) -> None:
    """Before the first test, and once where several processes share the tests."""
    if not hasattr(config, "workerinput"):
        remove_left_folders(Path(tempfile.gettempdir()))


def remove_left_folders(root: Path) -> None:
    """Removes what sessions that are dead have left under `root`."""
    for prefix in LEFT_FOLDERS:
        for folder in left_by_the_dead(root, prefix):
            try:
                remove_tree(folder)
            except OSError as error:  # a server of that session may still be ending; the next session takes it
                warnings.warn(f"a folder of a killed test session stays: {error}", stacklevel=1)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set up before every other fixture, and so torn down after all of them."""
    mark = uuid.uuid4().hex
    os.environ[MARK] = mark
    yield
    deadline = time.monotonic() + LINGER_S
    while left := [*_processes(mark), *_control_groups(), *_networks(), *_mounts(tmp_path_factory.getbasetemp())]:
        assert time.monotonic() < deadline, "left behind by a test:\n" + "\n".join(left)
        time.sleep(0.2)


def _processes(mark: str) -> list[str]:
    """Those that have the mark, by their commands; this one, and what counts its shared memory, are no test's."""
    found: list[str] = []
    for process in psutil.process_iter(["pid", "status", "cmdline"]):
        command = " ".join(process.info["cmdline"] or [])
        if process.info["status"] == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
            continue
        try:
            counts = process.ppid() == os.getpid() and "multiprocessing.resource_tracker" in command
            if process.environ().get(MARK) == mark and not counts:
                found.append(f"process {process.pid}: {command[:300]}")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def _control_groups() -> list[str]:
    own = f"stepwell-{os.getpid()}-"
    # Walked, since a glob breaks off where somebody else's group vanishes meanwhile.
    return [f"{at}/{name}" for at, below, _ in os.walk("/sys/fs/cgroup") for name in below if name.startswith(own)]


def _networks() -> list[str]:
    return [
        *map(str, Path("/run/netns").glob(f"stepwell-{os.getpid()}-*")),
        *map(str, Path("/sys/class/net").glob(f"sw{os.getpid()}*")),
    ]


def _mounts(folder: Path) -> list[str]:
    places = [Path(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [str(place) for place in places if place.is_relative_to(folder)]
