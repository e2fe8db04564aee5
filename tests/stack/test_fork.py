"""`stepwell audit fork`: a run that goes on from a version of another one."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from activities.stores import NoSuchRun, Stores
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.recorded import Recorded
from db.run_record import read_run
from stepwell.audit.record import Placed, RunRecord
from stepwell.audit.verification import verify
from stepwell.events import RolloutEnded, RunForked, StepCompleted, StepTrained
from stepwell.events.children import ChildHead
from stepwell.events.run_forked import SharedEvent
from stepwell.events.streams import run_stream, weights_stream
from stepwell.recipe.loading import RecipeError
from tests.book import failing
from tests.stack.tiny_run import Start
from workers.forks import find_or_fork


def stepwell(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments],
        env={**os.environ, "STEPWELL_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def fork(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return stepwell(home, "audit", "fork", *arguments)


def checked_alone(bundle: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-I", str(bundle / "verify.py"), str(bundle)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def versions(recorded: Sequence[Recorded]) -> dict[int, str]:
    return {each.event.version: each.event.weights_digest for each in recorded if isinstance(each.event, StepCompleted)}


async def forked(ledger: Ledger, run: str) -> RunForked:
    event = (await ledger.read(run_stream(run)))[1].event
    assert isinstance(event, RunForked)
    return event


async def trained_rollouts(ledger: Ledger, run: str, step: int) -> list[str]:
    """Digests of the tokens of a step's rollouts that the run made itself."""
    recorded = await ledger.read_prefix(f"rollout/{run}/{step}/")
    return [each.event.content for each in recorded if isinstance(each.event, RolloutEnded)]


def with_fork(record: RunRecord, change: Callable[[RunForked], RunForked]) -> RunRecord:
    """The record, had the fork said something else."""
    name = run_stream(record.run)
    stream = record.streams[name]
    events = [Placed(at, change(event) if isinstance(event, RunForked) else event) for at, event in stream.events]
    return replace(record, streams={**record.streams, name: replace(stream, events=tuple(events))})


def elsewhere(shared: SharedEvent) -> SharedEvent:
    return shared.model_copy(update={"hash": "0" * 64})


LIES: dict[str, Callable[[RunForked], dict[str, object]]] = {
    "its head": lambda said: {"head": elsewhere(said.head)},
    "a version's digest": lambda said: {
        "versions": [*said.versions[:-1], said.versions[-1].model_copy(update={"exported": "0" * 64})]
    },
    "a version too few": lambda said: {"versions": said.versions[1:]},
    "a better score": lambda said: {"scores": [said.scores[0].model_copy(update={"pass_k": 0.99})]},
    "a group that ended otherwise": lambda said: {
        "reused": [ChildHead(stream=said.reused[0].stream, seq=1, head="0" * 64, facts="0" * 64), *said.reused[1:]]
    },
    "a group of another step": lambda said: {
        "reused": [said.reused[0].model_copy(update={"stream": "prompt/forked/0/0"})]
    },
}


async def test_a_fork_that_changes_nothing_makes_the_same_versions(
    start_run: Start, ledger: Ledger, blobs: BlobStore, connections: Database, tmp_path: Path
) -> None:
    parent = start_run("forked", "run.checkpoint_every=2", "validation.first=1", "validation.every=1")
    assert await parent.finish() == 0, parent.output
    made = versions(await ledger.read(run_stream("forked")))

    told = fork(parent.home, "forked", "--at", "1", "--name", "fork-same")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "of run forked at version 1, 2 prompts' rollouts taken over" in told.stdout
    event = await forked(ledger, "fork-same")
    assert (event.parent, event.step, [shared.version for shared in event.versions]) == ("forked", 1, [0, 1])
    assert ([score.version for score in event.scores], len(event.reused)) == ([1], 2)
    assert versions(await ledger.read(run_stream("fork-same"))) == {2: made[2]}
    assert await trained_rollouts(ledger, "fork-same", 1) == [], "version 0, which both have, generated step 1"
    trained = [each.event for each in await ledger.read(weights_stream("fork-same"))]
    assert [each.step for each in trained if isinstance(each, StepTrained)] == [1]

    record = await read_run(connections, blobs, "fork-same")
    assert record is not None
    assert failing(verify(record)) == {}
    for lie, change in LIES.items():
        false = with_fork(record, lambda said, change=change: said.model_copy(update=change(said)))
        assert "ancestry" in failing(verify(false)), lie

    for question, answer in (
        (("audit", "replay", "fork-same"), "1 steps, every batch equal to the byte"),
        (("audit", "retrain", "fork-same"), "1 steps, every weight version equal to the bit"),
        (("audit", "explain", "fork-same", "version/1"), "of run forked, which this run goes on from"),
        (("audit", "explain", "fork-same", "rollout/1/0/0"), "rollout/forked/1/0/0"),
        (("report", "fork-same"), "Verified: all 24 rules hold"),
    ):
        asked = stepwell(parent.home, *question)
        assert (asked.returncode, answer in asked.stdout) == (0, True), asked.stdout + asked.stderr
    bundle = tmp_path / "bundle"
    exported = stepwell(parent.home, "audit", "export", "fork-same", "--out", str(bundle))
    assert exported.returncode == 0, exported.stderr
    alone = checked_alone(bundle)
    assert alone.returncode == 0, alone.stdout + alone.stderr
    assert "not proven: version 1, 2 groups are run forked's" in alone.stdout

    stores = Stores(ledger, blobs, "control:test/1")
    found, _ = await find_or_fork(stores, "forked", 1, [], "fork-same")
    assert (found.name, found.end is not None) == ("fork-same", True), "a fork that is finished is found by its name"
    with pytest.raises(NoSuchRun, match="no run 'forket': did you mean 'forked'"):
        await find_or_fork(stores, "forket", 1, [])
    for at, settings, name, why in (
        (7, [], None, "--at 7: run forked has versions 0 to 2; a fork begins with one of them"),
        (2, [], None, "run.max_steps = 2: a fork at version 2 has no step to do; set a larger one"),
        (1, ["run.prompts_per_step=3"], None, "run.prompts_per_step cannot be set in a fork"),
        (1, ["run.seed=4"], "fork-same", "--name fork-same: a run of that name exists, and is not this fork"),
        (1, ["rl.normalize=none"], None, "rl.normalize: unknown key"),
    ):
        with pytest.raises(RecipeError, match=why):
            await find_or_fork(stores, "forked", at, settings, name)


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_a_fork_of_a_fork_trains_on_with_its_own_settings(
    start_run: Start, ledger: Ledger, blobs: BlobStore, connections: Database
) -> None:
    parent = start_run("forked-on", "run.max_steps=3", "run.checkpoint_every=2")
    assert await parent.finish() == 0, parent.output
    first = fork(parent.home, "forked-on", "--at", "1", "--name", "fork-first", "--set", "optimiser.learning_rate=1e-4")
    assert first.returncode == 0, first.stdout + first.stderr
    assert len((await forked(ledger, "fork-first")).reused) == 4, "of steps 1 and 2, which versions 0 and 1 generate"

    second = fork(parent.home, "fork-first", "--at", "2", "--name", "fork-second", "--set", "run.seed=9")
    assert second.returncode == 0, second.stdout + second.stderr
    event = await forked(ledger, "fork-second")
    assert (event.parent, event.step, event.reused, event.scores) == ("fork-first", 2, [], [])
    assert set(versions(await ledger.read(run_stream("fork-second")))) == {3}
    theirs, ours = await trained_rollouts(ledger, "forked-on", 2), await trained_rollouts(ledger, "fork-second", 2)
    assert len(theirs) == len(ours) == 8
    assert theirs != ours, "another seed samples anew"

    third = fork(parent.home, "fork-second", "--at", "1", "--name", "fork-third", "--set", "run.max_steps=4")
    assert third.returncode == 0, third.stdout + third.stderr
    assert (await forked(ledger, "fork-third")).parent == "forked-on", "whose version 1 is"
    assert set(versions(await ledger.read(run_stream("fork-third")))) == {2, 3, 4}, "longer than its parent"
    for run in ("fork-first", "fork-second", "fork-third"):
        record = await read_run(connections, blobs, run)
        assert record is not None
        assert failing(verify(record)) == {}
