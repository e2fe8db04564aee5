"""Workers: their processes die with their parent, and what they implement is what workflows declare."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from activities.run import RunActivities
from workers.declarations import WrongActivity, activity_name, check_activities

PARENT = """
import subprocess, sys, os, time
child = subprocess.Popen([sys.executable, "-c", {child!r}], stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""
CHILD = """
import os, time
from workers.lifetime import die_with_parent
die_with_parent(os.getppid())
print("ready", flush=True)
time.sleep(60)
"""


def test_worker_dies_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT.format(child=CHILD)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    child.wait(timeout=5)


def test_worker_whose_parent_is_gone_already_does_not_start() -> None:
    script = "from workers.lifetime import die_with_parent\ndie_with_parent(1 << 22)"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert answer.returncode != 0
    assert "is gone" in answer.stderr


def test_declared_activities_pass_and_others_are_refused() -> None:
    check_activities([RunActivities.fold_run])
    assert activity_name(RunActivities.fold_run) == "fold_run"
    with pytest.raises(WrongActivity, match="lacks @activity"):
        check_activities([time.sleep])
