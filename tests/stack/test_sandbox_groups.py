"""Control groups around sandboxes, on the kernel's own file system."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.cgroups import ROOT, Cgroup, Cgroups, GroupLimits
from stepwell.sandbox.guest_init import SPARE_PROCESSES
from stepwell.sandbox.protocol import SandboxLimits
from tests.stack.test_sandbox_life import WORKER

LIMITS = GroupLimits(memory_bytes=64 << 20, processes=16)
BOMB = """
import os, time
for _ in range(100):
    try:
        if os.fork() == 0:
            time.sleep(60)
    except OSError:
        print("refused", flush=True)
        break
"""
HOG = "import time; time.sleep(0.5); kept = [b'1' * (1 << 20) for _ in range(512)]; time.sleep(60)"


@pytest.fixture
def groups() -> Cgroups:
    found = Cgroups.find()
    if found is None:
        pytest.skip("this machine lets nobody make control groups: sandboxes are bounded by their watch alone")
    return found


@pytest.fixture
def group(groups: Cgroups) -> Iterator[Cgroup]:
    made = groups.make(LIMITS)
    yield made
    made.remove()
    assert not any(folder.exists() for folder in made.folders)


def state_of(pid: str) -> str:
    """What has become of a process; an orphan may wait for its new parent to take note of its end."""
    try:
        return psutil.Process(int(pid)).status()
    except psutil.NoSuchProcess:
        return "gone"


def started_in(group: Cgroup, program: str) -> "subprocess.Popen[str]":
    """A process that runs `program` once it is in the group."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"input()\n{program}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    group.add(process.pid)
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return process


def test_no_more_processes_than_allowed_and_all_end_with_the_group(group: Cgroup) -> None:
    process = started_in(group, BOMB)
    assert process.stdout is not None
    assert process.stdout.readline() == "refused\n"
    inside = (group.folders[-1] / "cgroup.procs").read_text().split()
    assert len(inside) > 10
    group.remove()
    process.communicate(timeout=10)
    assert {state_of(pid) for pid in inside} <= {"gone", psutil.STATUS_ZOMBIE}


def test_no_more_memory_than_allowed(group: Cgroup) -> None:
    process = started_in(group, HOG)
    assert process.wait(30) == -9
    process.communicate()


async def test_a_sandbox_is_in_its_group_and_a_fork_bomb_stays_in_its_bounds(groups: Cgroups, tmp_path: Path) -> None:
    factory = BubblewrapFactory(tmp_path)
    sandbox = await factory.create({}, SandboxLimits(processes=32))
    assert sandbox.group is not None
    result = await sandbox.exec(["bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 30"], timeout_s=30)
    assert b"killed: more than 32 processes" in result.output
    (pids,) = [folder for folder in sandbox.group.folders if (folder / "pids.peak").exists()]
    assert 32 < int((pids / "pids.peak").read_text()) <= 32 + SPARE_PROCESSES
    assert (await sandbox.exec(["echo", "alive"], timeout_s=10)).output == b"alive\n"
    await factory.close()
    assert not pids.exists()


def test_what_a_killed_worker_leaves_is_swept_by_the_next(groups: Cgroups, group: Cgroup, tmp_path: Path) -> None:
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    worker.stdout.readline()
    parents = [folder.parent for folder in group.folders]
    left = [folder for parent in parents for folder in parent.glob(f"stepwell-{worker.pid}-*")]
    assert len(left) >= 3
    assert groups.sweep() == [], "it lives"
    worker.kill()
    worker.communicate()
    deadline = time.monotonic() + 20
    while any(folder.exists() for folder in left):
        assert Cgroups.find() is not None
        assert time.monotonic() < deadline


def test_without_a_group_of_its_own_there_are_none(tmp_path: Path) -> None:
    assert Cgroups.find(own=tmp_path / "missing") is None
    assert Cgroups.find(root=tmp_path) is None


def test_version_two_without_the_controllers_is_passed_over() -> None:
    unified = ROOT / "unified"
    if not unified.is_dir():
        pytest.skip("no second hierarchy: on this machine version 2 has the controllers, or there is no version 1")
    assert Cgroups.find(root=unified) is None
