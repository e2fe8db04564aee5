"""`stepwell down` ends the agents of its home, all of them and nothing else."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.trial_folders import TrialFolder, TrialFolders
from stepwell.ptb.supervisor import Attended, start
from stepwell.ptb.supervisor.host_folder import HostFolder
from stepwell.ptb.supervisor.host_process import HostProcess, host_process
from stepwell.sandbox.process_tree import descendants
from tests.supervised_agents import order, says
from workers.trial_agents import end_agents

STUBBORN = "(trap '' HUP; echo begun; while :; do sleep 0.1; done) & wait"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose agents end with the test."""
    yield tmp_path
    end_agents("the test is over", tmp_path)


def down(home: Path) -> "subprocess.CompletedProcess[str]":
    """The command."""
    return subprocess.run(
        [sys.executable, "-m", "cli.main", "down"],
        env={**os.environ, "STEPWELL_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def agent(folder: TrialFolder, own: Path) -> Attended:
    """One that works, in a start of a trial."""
    folder.work.mkdir(parents=True, exist_ok=True)
    attended = start(order(folder.root, STUBBORN, work=str(folder.work), grace_s=1.0), own, {})
    says(attended, "begun")
    return attended


def test_down_ends_every_agent_of_the_home_and_the_tests_before_the_clock(home: Path) -> None:
    folders = TrialFolders(home / "trials")
    assert folders.host  # a file beside the run sets
    first, again = folders.of("one", "a.m.b.0", 0), folders.of("two", "a.m.b.0", 1)
    agents = [agent(first, first.supervisor), agent(again, again.supervisor), agent(again, again.test / "f00d")]
    running = [each.status().supervisor.pid for each in agents]
    running += [pid for supervisor in list(running) for pid in descendants(supervisor)]
    assert len(running) >= 3 * 4
    done = down(home)
    assert done.returncode == 0, done.stderr
    assert [pid for pid in running if host_process(pid)] == []
    assert [str(each.folder) in done.stdout for each in agents] == [True] * 3
    ends = [each.end() for each in agents]
    assert [(end.ended, end.detail) for end in ends if end] == [("stopped", "`stepwell down`")] * 3
    assert down(home).stdout == "nothing ran\n"


def test_down_believes_nothing_that_an_agent_wrote(home: Path) -> None:
    folder = TrialFolders(home / "trials").of("one", "a.m.b.0", 0)
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        named = host_process(bystander.pid)
        assert isinstance(named, HostProcess)
        for place in (folder.work, folder.work / "supervisor", folder.home, folder.home / "0" / "supervisor"):
            place.mkdir(parents=True, exist_ok=True)
            HostFolder(place).host.write_text(named.model_dump_json())
        assert down(home).stdout == "nothing ran\n"
        assert bystander.poll() is None
        assert list(folder.tree.rglob("stop")) == []
    finally:
        bystander.kill()
        bystander.wait()
