"""The warm-up on demonstrations as part of making version 0: durable, the same again, and soon over when it is told."""

import asyncio
import logging
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from activities.folders import get_folder
from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.events import CheckpointSaved, RunCreated, VersionCreated
from stepwell.events.streams import run_stream
from stepwell.policy.weights import load_folder, weights_digest
from stepwell.recipe.loading import RecipeError, resolve
from stepwell.tasks.manifest import TaskEntry, TaskManifest, task_blob
from tests.stack.test_gold_demonstrations import TASKS
from tests.stack.trainer_processes import Trainers, events_of
from tests.warmed_recipe import make_policy, warmed_recipe


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return make_policy(tmp_path / "policy")


@pytest.fixture
def begun(ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str], policy: Path):
    """Records a run that is to warm the policy up."""

    async def begin(agent: dict[str, object] | None = None, **warm_up: object) -> str:
        table = warmed_recipe(policy, agent=agent or {})
        table["policy"]["warm_up"] |= warm_up
        recipe, run = resolve(table, source="a test"), fresh()
        stored = [TaskEntry(id=task.id, blob=(await blobs.put(task_blob(task))).digest) for task in TASKS[:2]]
        manifest = TaskManifest(train=(), demonstrated=tuple(stored), main=(), confirm=(), heldout=())
        task_set = (await blobs.put(manifest.blob())).digest
        created = RunCreated(recipe=recipe.model_dump(mode="json"), recipe_digest=recipe.digest, task_set=task_set)
        await ledger.append(run_stream(run), [created], expected_seq=0, actor="control:test/1")
        return run

    return begin


@pytest.fixture
def trainers(ledger: Ledger, blobs: BlobStore, tmp_path: Path) -> Trainers:
    return Trainers(ledger, blobs, tmp_path).another()


def running() -> list[list[str]]:
    """Functions that each thread of this process is in."""
    return [
        [frame.f_code.co_name for frame, _ in traceback.walk_stack(inmost)] for inmost in sys._current_frames().values()
    ]


async def test_version_0_is_the_warmed_policy_and_says_how_it_was_made(
    begun, trainers: Trainers, ledger: Ledger, blobs: BlobStore, policy: Path, tmp_path: Path
) -> None:
    run = await begun()
    await trainers.create(run)
    created, saved = await events_of(ledger, run)
    assert isinstance(created, VersionCreated)
    assert isinstance(saved, CheckpointSaved)
    base = weights_digest(load_folder(policy))
    assert re.fullmatch(rf"warm-up of {base} on 2 demonstrations [0-9a-f]{{64}}", created.origin)
    assert (created.metrics["steps"], created.metrics["rows"], created.metrics["left_out"]) == (3, 2, 0)
    assert created.metrics["loss"] > 0
    folder = await get_folder(blobs, created.export, tmp_path / "fetched")
    assert weights_digest(load_folder(folder)) == created.digests.exported != base
    assert (folder / "tokenizer.json").read_bytes() == (policy / "tokenizer.json").read_bytes()
    moved, given = (AutoModelForCausalLM.from_pretrained(each).state_dict() for each in (folder, policy))
    assert not torch.equal(moved["model.norm.weight"], given["model.norm.weight"])


async def test_another_trainer_makes_the_same_version_0(begun, trainers: Trainers, ledger: Ledger) -> None:
    made: list[VersionCreated] = []
    for _ in range(2):
        run = await begun()
        await trainers.another().create(run)
        created = (await events_of(ledger, run))[0]
        assert isinstance(created, VersionCreated)
        made.append(created)
    assert made[0].digests == made[1].digests
    assert (made[0].origin, made[0].metrics) == (made[1].origin, made[1].metrics)


async def test_bounds_in_which_nothing_can_be_demonstrated_are_an_error_of_the_recipe(
    begun, trainers: Trainers, ledger: Ledger
) -> None:
    run = await begun(agent={"max_turn_tokens": 32})
    with pytest.raises(RecipeError, match=r"none of 2 tasks can be demonstrated.*max_turn_tokens"):
        await trainers.create(run)
    assert await events_of(ledger, run) == []


async def test_an_attempt_that_is_cancelled_computes_no_further_and_leaves_nothing(
    begun, trainers: Trainers, ledger: Ledger, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "stepwell.policy.supervised")
    run = await begun(steps=1_000_000)
    attempt = asyncio.create_task(trainers.create(run))
    while "warm-up: step" not in caplog.text:
        assert not attempt.done(), attempt
        await asyncio.sleep(0.01)
    assert any("supervise" in functions for functions in running())
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert not any("supervise" in functions for functions in running())
    assert await events_of(ledger, run) == []
    assert list(tmp_path.rglob("*version-0*")) == []
