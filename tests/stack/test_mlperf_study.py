"""A study of two seeds as a process: interrupted in the first, gone on with, and read again."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from db.ledger import Ledger
from stepwell.events import RunFinished, StepCompleted
from stepwell.events.streams import run_stream
from tests.stack.tiny_run import RECIPE, TIMEOUT_S
from workers.services.addresses import Addresses
from workers.services.plan import launcher_argv

STUDIED = ("run.max_steps=1", "validation.first=1", "validation.every=1", "validation.target=0.999")
"""One step, and a validation that does not reach the target."""


def start(recipe: Path, home: Path, *options: str) -> "subprocess.Popen[str]":
    """The command, which dies with this process."""
    settings = [part for setting in STUDIED for part in ("--set", setting)]
    command = [sys.executable, "-m", "cli.main", "mlperf", "study", str(recipe), "--seeds", "2", *settings, *options]
    return subprocess.Popen(
        launcher_argv(command, death_signal=signal.SIGKILL, identity=None),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "STEPWELL_HOME": str(home)},
        start_new_session=True,
    )


async def test_an_interrupted_study_goes_on_where_it_was(
    services: Addresses, services_home: Path, ledger: Ledger, tmp_path: Path
) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(RECIPE)
    first = start(recipe, services_home, "--name", "studied")
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while not await ledger.read(run_stream("studied-seed3")):
            assert first.poll() is None, first.communicate()
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        first.send_signal(signal.SIGINT)
        _, said = first.communicate(timeout=TIMEOUT_S)
    finally:
        first.kill()
    assert first.returncode == 1
    assert "run studied-seed3 is left where it is" in said
    assert await ledger.read(run_stream("studied-seed4")) == []

    points = tmp_path / "points.json"
    second = start(recipe, services_home, "--name", "studied", "--json")
    try:
        out, said = second.communicate(timeout=2 * TIMEOUT_S)
    finally:
        second.kill()
    assert second.returncode == 1, said  # no seed reached the target
    told = json.loads(out)
    assert [each["run"] for each in told["seeds"]] == ["studied-seed3", "studied-seed4"]
    assert [each["samples_to_target"] for each in told["seeds"]] == [None, None]
    assert set(told["scatter"]) == {"pass_k", "pass_1", "pass_all"}
    before = {}
    for number in (3, 4):
        before[number] = await ledger.read(run_stream(f"studied-seed{number}"))
        kinds = [type(each.event) for each in before[number]]
        assert kinds.count(StepCompleted) == 1
        assert kinds[-1] is RunFinished

    third = start(recipe, services_home, "--name", "studied", "--out", str(points))
    try:
        out, said = third.communicate(timeout=TIMEOUT_S)
    finally:
        third.kill()
    assert third.returncode == 2, said
    assert "0 of 2 seeds reached the target" in said
    assert "coefficient of variation" in out
    assert not points.exists()
    for number in (3, 4):
        assert await ledger.read(run_stream(f"studied-seed{number}")) == before[number]
