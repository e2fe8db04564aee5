"""A version that cannot be rebuilt to the bit stops the run, which says what was found and what was recorded."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError

from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.events import RunFinished
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import run_stream, weights_stream
from stepwell.policy.weights import DigestMismatch
from tests.recorded_batches import RecordedBatches, complete_step, record_batches, recorded_recipe
from tests.stack.trainer_processes import Trainers, copy_weights, digests_of, undisturbed
from workers.runs import start
from workers.runtime import connect
from workers.services.addresses import Addresses


@pytest.fixture
def trainers(ledger: Ledger, blobs: BlobStore, tmp_path: Path) -> Trainers:
    """The first process."""
    return Trainers(ledger, blobs, tmp_path).another()


async def test_version_that_cannot_be_rebuilt_stops_the_attempt_with_both_digests(
    trainers: Trainers, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]
) -> None:
    tampered = await tampered_run(trainers, ledger, blobs, fresh)
    head = await ledger.head(weights_stream(tampered.run))
    with pytest.raises(DigestMismatch) as caught:
        await trainers.another().train(tampered.run, 1)
    message = str(caught.value)
    recorded = (await digests_of(ledger, tampered.run))[0]
    assert message.startswith("version 1 rebuilt is not the recorded one: master and exported ")
    assert f"{recorded.master} recorded" in message
    assert f"{undisturbed(tampered)[1].master} here" in message
    assert f"{recorded.optimiser} recorded" not in message, "moments do not depend on the learning rate"
    assert await ledger.head(weights_stream(tampered.run)) == head


async def tampered_run(
    trainers: Trainers, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]
) -> RecordedBatches:
    """A run whose step 0 was trained as its record says, but by another learning rate than its recipe's."""
    honest, tampered = fresh(), fresh()
    await record_batches(ledger, blobs, honest, recorded_recipe(max_steps=2), [2, 2], seed=honest)
    slower = recorded_recipe(max_steps=2, learning_rate=9e-4)
    run = await record_batches(ledger, blobs, tampered, slower, [2, 2], seed=honest)
    await trainers.create(honest)
    await trainers.train(honest, 0)
    await copy_weights(ledger, honest, tampered, lambda event: True)
    return run


async def test_run_whose_versions_cannot_be_rebuilt_ends_with_both_digests(
    trainers: Trainers,
    ledger: Ledger,
    blobs: BlobStore,
    services: Addresses,
    services_home: Path,
    fresh: Callable[[], str],
    tmp_path: Path,
) -> None:
    tampered = await tampered_run(trainers, ledger, blobs, fresh)
    await complete_step(ledger, tampered.run, 0)
    client = await connect(services, identity="test")
    with workers(services_home, tmp_path / "workers.log", "control", "trainer"):
        handle = await start(client, tampered.run, tampered.recipe)
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 120)
    finished = (await ledger.read(run_stream(tampered.run)))[-1].event
    assert isinstance(finished, RunFinished)
    assert finished.end is RunEnd.FAILED
    found, recorded = undisturbed(tampered)[1], (await digests_of(ledger, tampered.run))[0]
    assert f"{found.master} here, {recorded.master} recorded" in finished.cause


@contextmanager
def workers(home: Path, log: Path, *kinds: str) -> Iterator[None]:
    """Worker processes for the block; they die with this process."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        with log.open("ab") as out:
            running += [
                subprocess.Popen(
                    [sys.executable, "-m", "cli.main", "worker", "--parent", str(os.getpid()), kind],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    env={**os.environ, "STEPWELL_HOME": str(home)},
                    start_new_session=True,
                )
                for kind in kinds
            ]
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
