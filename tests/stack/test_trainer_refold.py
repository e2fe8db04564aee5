"""A trainer that was killed takes its run up: from the ledger, from checkpoints, from recorded batches, never from half
a file. Each `Trainers.another` is what a new worker process knows: nothing."""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pytest

from activities.trainer_memory import in_thread
from db.blobs import BlobStore, object_key
from db.ledger import Ledger
from db.objects import S3Address
from stepwell.events import CheckpointSaved, StepTrained
from stepwell.events.streams import weights_stream
from stepwell.policy.trainers.protocol import TrainerClosed
from tests.recorded_batches import RecordedBatches, record_batches, recorded_recipe
from tests.small_models import make_batch, make_folder, make_samples, make_trainer
from tests.stack.database import DatabaseUrls
from tests.stack.trainer_processes import Trainers, copy_weights, digests_of, events_of, undisturbed

PROMPTS = [2, 2, 2, 2]


@pytest.fixture
def trainers(ledger: Ledger, blobs: BlobStore, tmp_path: Path) -> Trainers:
    """The first process."""
    return Trainers(ledger, blobs, tmp_path).another()


async def two_runs(
    ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str], prompts: list[int], **run: int
) -> tuple[RecordedBatches, RecordedBatches]:
    """Two runs of the same batches."""
    first, second = fresh(), fresh()
    recipe = recorded_recipe(**run)
    return (
        await record_batches(ledger, blobs, first, recipe, prompts, seed=first),
        await record_batches(ledger, blobs, second, recipe, prompts, seed=first),
    )


async def test_checkpoint_that_a_kill_prevented_is_written_when_its_version_is_next_held(
    trainers: Trainers, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]
) -> None:
    straight, killed = await two_runs(ledger, blobs, fresh, PROMPTS, checkpoint_every=2)
    await trainers.create(straight.run)
    for step in range(4):
        await trainers.train(straight.run, step)
    await copy_weights(
        ledger,
        straight.run,
        killed.run,
        lambda event: getattr(event, "version", 9) <= 2 and event.key() != "checkpoint/2",
    )
    trainers.another()
    answer = await trainers.train(killed.run, 1)
    assert answer.version == 2
    assert "checkpoint/2" not in [event.key() for event in await events_of(ledger, killed.run)], "it holds nothing"
    await trainers.train(killed.run, 2)
    await trainers.train(killed.run, 3)
    wanted = ["version/0", "checkpoint/0", "train/0", "train/1", "checkpoint/2", "train/2", "train/3", "checkpoint/4"]
    assert [event.key() for event in await events_of(ledger, straight.run)] == wanted
    assert [event.key() for event in await events_of(ledger, killed.run)] == wanted
    of_each = [
        [event.facts() for event in await events_of(ledger, run) if isinstance(event, StepTrained | CheckpointSaved)]
        for run in (straight.run, killed.run)
    ]
    for ours in of_each:
        for facts in ours:
            facts.pop("manifest", None)  # names its run's rollouts
    assert of_each[0] == of_each[1]


DAMAGE = ["missing", "truncated", *(pytest.param(what, marks=pytest.mark.long) for what in ("changed", "forgotten"))]
"""What is wrong with the master weights of a checkpoint: `forgotten` has no row in the database."""


@pytest.mark.parametrize("what", DAMAGE)
async def test_damaged_checkpoint_is_passed_over_and_put_again(
    what: str,
    trainers: Trainers,
    ledger: Ledger,
    blobs: BlobStore,
    bucket: S3Address,
    database: DatabaseUrls,
    fresh: Callable[[], str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = fresh()
    recorded = await record_batches(ledger, blobs, name, recorded_recipe(checkpoint_every=1), [2, 2, 2], seed=name)
    await trainers.create(name)
    await trainers.train(name, 0)
    await trainers.train(name, 1)
    damaged = next(event for event in await events_of(ledger, name) if event.key() == "checkpoint/2")
    assert isinstance(damaged, CheckpointSaved)
    masters = json.loads(await blobs.get(damaged.files))["masters.safetensors"]
    whole = await blobs.get(masters)
    store, key = s3_client(bucket), object_key(masters)
    if what == "missing":
        store.delete_object(Bucket=bucket.bucket, Key=key)
    elif what == "forgotten":
        with psycopg.connect(database.migrator) as connection:
            connection.execute("DELETE FROM blob_retentions WHERE digest = %s", [masters])
            connection.execute("DELETE FROM blobs WHERE digest = %s", [masters])
    else:
        half = whole[: len(whole) // 2]
        store.put_object(Bucket=bucket.bucket, Key=key, Body=half if what == "truncated" else half + half[::-1])
    trainers.another()
    with caplog.at_level(logging.WARNING, "activities.trainer_memory"):
        await trainers.train(name, 2)
    assert f"run {name}: the checkpoint of version 2 cannot be used" in caplog.text
    assert await digests_of(ledger, name) == undisturbed(recorded)[1:]
    keys = [event.key() for event in await events_of(ledger, name)]
    assert keys.count("checkpoint/2") == 1
    if what != "changed":  # a store that returns other bytes of the right length is an operator's affair
        assert await blobs.get(masters) == whole
    store.put_object(Bucket=bucket.bucket, Key=key, Body=whole)


async def test_without_any_whole_checkpoint_everything_is_rebuilt_from_version_0(
    trainers: Trainers, ledger: Ledger, blobs: BlobStore, bucket: S3Address, fresh: Callable[[], str]
) -> None:
    name = fresh()
    recorded = await record_batches(ledger, blobs, name, recorded_recipe(checkpoint_every=1), [2, 2, 2], seed=name)
    await trainers.create(name)
    await trainers.train(name, 0)
    await trainers.train(name, 1)
    for event in await events_of(ledger, name):
        if isinstance(event, CheckpointSaved) and event.version > 0:
            optimiser = json.loads(await blobs.get(event.files))["optimiser.safetensors"]
            s3_client(bucket).delete_object(Bucket=bucket.bucket, Key=object_key(optimiser))
    await trainers.another().train(name, 2)
    assert await digests_of(ledger, name) == undisturbed(recorded)[1:]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
async def test_another_process_goes_on_from_version_0_to_the_bit(
    dtype: str, trainers: Trainers, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]
) -> None:
    recipe = recorded_recipe(compute_dtype=dtype)
    recorded = await record_batches(ledger, blobs, fresh(), recipe, [2, 2])
    await trainers.create(recorded.run)
    keys = [event.key() for event in await events_of(ledger, recorded.run)]
    assert keys == ["version/0", "checkpoint/0"]  # in one append: no kill comes between
    await trainers.another().train(recorded.run, 0)
    await trainers.another().train(recorded.run, 1)
    assert await digests_of(ledger, recorded.run) == undisturbed(recorded)[1:]


async def test_rates_that_operators_set_are_used_again_when_a_version_is_rebuilt(
    trainers: Trainers, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]
) -> None:
    rates = {1: 4e-3}
    recorded = await record_batches(ledger, blobs, fresh(), recorded_recipe(), [2, 2, 2], rates=rates)
    await trainers.create(recorded.run)
    await trainers.train(recorded.run, 0)
    made = await trainers.train(recorded.run, 1)
    assert made.metrics["learning_rate"] == 4e-3
    made = await trainers.another().train(recorded.run, 2)
    assert made.metrics["learning_rate"] == recorded.recipe.optimiser.learning_rate
    assert await digests_of(ledger, recorded.run) == undisturbed(recorded, rates)[1:]


async def test_step_asked_again_is_answered_from_the_ledger(
    trainers: Trainers, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]
) -> None:
    recorded = await record_batches(ledger, blobs, fresh(), recorded_recipe(), [2])
    made = [await trainers.create(recorded.run), await trainers.train(recorded.run, 0)]
    before = await ledger.head(weights_stream(recorded.run))
    again = trainers.another()
    assert [await again.create(recorded.run), await again.train(recorded.run, 0)] == made
    assert await ledger.head(weights_stream(recorded.run)) == before


async def test_cancelled_attempt_ends_the_step_that_it_began(tmp_path: Path) -> None:
    trainer = make_trainer(make_folder(tmp_path / "model"))
    rows = make_samples(4000)
    batch = make_batch(rows, [float(index % 2) for index in range(len(rows))])
    attempt = asyncio.create_task(in_thread(trainer, trainer.step, batch))
    await asyncio.sleep(1.0)
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert trainer.version == 0
    with pytest.raises(TrainerClosed):
        trainer.step(batch)


def s3_client(bucket: S3Address) -> Any:
    """The store as its administrator has it."""
    return boto3.client(
        "s3",
        endpoint_url=bucket.endpoint,
        aws_access_key_id=bucket.access_key,
        aws_secret_access_key=bucket.secret_key,
        region_name=bucket.region,
    )
