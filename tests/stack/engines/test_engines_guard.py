"""The guard of vLLM's server, with a small family of processes in its place."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from stepwell.policy.engines import vllm_guard
from stepwell.policy.engines.vllm_process import _clean_up_for_guard

# A leader whose child starts a grandchild in a session of its own, and ends: an orphan outside the group.
FAMILY = """
import os, signal, sys, time
pids = sys.argv[1]
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(pids, "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(300)
with open(pids, "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(300)
"""

# A parent that starts the guard and waits to be killed.
PARENT = """
import subprocess, sys, time
subprocess.Popen(sys.argv[1:])
time.sleep(300)
"""


def guarded(folder: Path, *command: str) -> list[str]:
    return [sys.executable, "-I", vllm_guard.__file__, str(folder), *command]


def wait_for_family(pids: Path) -> list[psutil.Process]:
    until = time.monotonic() + 20
    while not pids.exists() or len(pids.read_text().split()) < 3:
        assert time.monotonic() < until, "the family did not start"
        time.sleep(0.02)
    return [psutil.Process(int(pid)) for pid in pids.read_text().split()]


@pytest.mark.parametrize("signal_parent", [True, False], ids=["parent killed", "guard terminated"])
def test_nothing_outlives_the_guards_parent_or_its_end(tmp_path, signal_parent):
    private, pids = tmp_path / "private", tmp_path / "pids"
    private.mkdir()
    command = guarded(private, sys.executable, "-c", FAMILY, str(pids))
    parent = subprocess.Popen([sys.executable, "-c", PARENT, *command] if signal_parent else command)
    family = wait_for_family(pids)
    if signal_parent:
        family += psutil.Process(parent.pid).children()
        parent.kill()
    else:
        parent.terminate()
    parent.wait(timeout=20)
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not alive
    assert not private.exists()


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)])
def test_the_guard_ends_as_its_command_did(tmp_path, code, status):
    private = tmp_path / "private"
    private.mkdir()
    assert subprocess.run(guarded(private, sys.executable, "-c", code), timeout=20).returncode == status
    assert not private.exists()


def test_what_a_killed_guard_leaves_is_ended_by_who_started_it(tmp_path):
    private = tmp_path / "private"
    private.mkdir()
    guard = subprocess.Popen(guarded(private, "sh", "-c", "sleep 300 & sleep 300"))
    until = time.monotonic() + 20
    while len(family := psutil.Process(guard.pid).children(recursive=True)) < 3:
        assert time.monotonic() < until, "the family did not start"
        time.sleep(0.02)
    guard.kill()
    guard.wait(timeout=20)
    family[0].wait(timeout=20)  # the leader is tied to the guard, its children are not
    _clean_up_for_guard(private)
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not alive
    assert not private.exists()
    _clean_up_for_guard(private)
