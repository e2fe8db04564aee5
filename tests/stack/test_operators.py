"""Pause and resume, from the command line, against the real workflow."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from db.ledger import Ledger
from stepwell.events import OperatorActed, StepDispatched
from stepwell.events.streams import operator_stream
from tests.stack.tiny_run import Start, TinyRun
from workers.services.addresses import Addresses


def stepwell(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """One command of a user."""
    return subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments],
        env={**os.environ, "STEPWELL_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


async def test_pause_resume_and_stop_are_accepted_refused_and_recorded(
    start_run: Start, services_home: Path, ledger: Ledger
) -> None:
    run = start_run("steered", "run.max_steps=200")
    await run.until(lambda events: any(isinstance(each.event, StepDispatched) for each in events))

    refused = stepwell(services_home, "pause", run.name, "--reason", " ")
    assert refused.returncode == 1
    assert "a reason is needed" in refused.stderr
    assert "not paused" in stepwell(services_home, "resume", run.name).stderr

    paused = stepwell(services_home, "pause", run.name, "--reason", "the disk is replaced", "--json")
    assert paused.returncode == 0, paused.stderr
    assert json.loads(paused.stdout)["state"] == "paused"
    assert "paused already" in stepwell(services_home, "pause", run.name, "--reason", "again").stderr
    before = await dispatched(run)
    await asyncio.sleep(5)
    assert await dispatched(run) <= before + 1, "a paused run begins no step after the one under way"

    resumed = stepwell(services_home, "resume", run.name, "--json")
    assert json.loads(resumed.stdout)["state"] == "running"
    await run.until(lambda events: sum(isinstance(each.event, StepDispatched) for each in events) > before + 1)

    stopped = stepwell(services_home, "stop", run.name, "--reason", "wrong recipe")
    assert stopped.returncode == 0, stopped.stderr
    assert await run.finish() == 0, run.output
    assert "wrong recipe" in run.output
    assert run.verify().returncode == 0

    acts = [each.event for each in await ledger.read(operator_stream(run.name))]
    assert [(act.action, act.reason) for act in acts if isinstance(act, OperatorActed)] == [
        ("pause", "the disk is replaced"),
        ("resume", ""),
        ("stop", "wrong recipe"),
    ]
    assert all(isinstance(act, OperatorActed) and "@" in act.who for act in acts)


async def dispatched(run: TinyRun) -> int:
    """Steps dispatched so far."""
    return sum(isinstance(each.event, StepDispatched) for each in await run.events())


def test_a_run_that_does_not_exist_is_a_usage_error(services: Addresses, services_home: Path) -> None:
    answer = stepwell(services_home, "pause", "nobody", "--reason", "x")
    assert answer.returncode == 2
    assert "nobody" in answer.stderr
