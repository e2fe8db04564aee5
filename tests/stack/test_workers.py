"""Workers: their processes die with their parent, and what they implement is what workflows declare."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from activities.run import RunActivities
from db.migrate import upgrade
from workers.declarations import WrongActivity, activity_name, check_activities
from workers.services.addresses import Addresses
from workers.services.lifecycle import held
from workers.services.plan import launcher_argv

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


def worker(home: Path, *arguments: str) -> "subprocess.Popen[str]":
    """A worker on the services of a home; it dies with the test."""
    command = [sys.executable, "-m", "cli.main", "worker", *arguments]
    return subprocess.Popen(
        launcher_argv(command, death_signal=signal.SIGKILL, identity=None),
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "STEPWELL_HOME": str(home)},
    )


def test_engine_that_is_up_before_its_run_waits_for_it_and_says_so(services: Addresses, services_home: Path) -> None:
    upgrade(services.migrator)
    with worker(services_home, "engine", "--run", "not-yet") as engine:
        assert engine.stderr is not None
        said = engine.stderr.readline()
        engine.terminate()
        rest = engine.stderr.read()
    assert "the engine waits for its run: the ledger has no run 'not-yet'" in said, said + rest
    assert engine.returncode == 0, rest


def test_worker_on_a_database_without_tables_says_what_to_do(tmp_path: Path) -> None:
    with held(tmp_path), worker(tmp_path, "sandbox") as sandbox:
        assert sandbox.stderr is not None
        said = sandbox.stderr.read()
    assert sandbox.returncode == 1
    assert "has form none, this Stepwell works on" in said
    assert "python -m db.migrate" in said
    assert "Traceback" not in said
