"""Folders in the machine's temporary folder name their owner; the next test session removes what a killed one left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from stepwell.sandbox.folders import left_by_the_dead, owner_name
from tests.nothing_left import LEFT_FOLDERS, remove_left_folders

HOLD = """
import sys, time
from stepwell.sandbox.folders import temporary_folder
with temporary_folder(sys.argv[1]) as folder:
    (folder / "inner").mkdir()
    print(folder, flush=True)
    sys.stdin.read()
"""


def holder(root: Path, prefix: str) -> "subprocess.Popen[str]":
    """A process that has a temporary folder under `root`, until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, prefix],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(root)},
    )


def said_by(process: "subprocess.Popen[str]") -> Path:
    """The folder of a holder."""
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_a_folder_is_there_as_long_as_its_block_runs(tmp_path: Path) -> None:
    process = holder(tmp_path, "mine-")
    folder = said_by(process)
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    assert left_by_the_dead(tmp_path, "mine-") == []
    process.communicate()
    assert list(tmp_path.iterdir()) == []


def test_what_killed_sessions_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    killed = [holder(tmp_path, prefix) for prefix in LEFT_FOLDERS]
    left = {said_by(process) for process in killed}
    for process in killed:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    (tmp_path / "elsewhere").mkdir()
    kept = [tmp_path / f"stepwell-test-{owner_name()}-7", tmp_path / "stepwell-test-a1b2", tmp_path / "1-1-1"]
    for folder in kept:
        folder.mkdir()
    link = tmp_path / "stepwell-test-1-1-1"  # names a process that is gone, and leads elsewhere
    link.symlink_to(tmp_path / "elsewhere")
    assert {folder for prefix in LEFT_FOLDERS for folder in left_by_the_dead(tmp_path, prefix)} == left
    remove_left_folders(tmp_path)
    assert set(tmp_path.iterdir()) == {*kept, link, tmp_path / "elsewhere"}
