"""SIGKILL of the trainer at every moment of a step: each step is applied once, and what comes out is to the bit what an
undisturbed trainer makes of the same batches."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from db.blobs import BlobStore
from db.database import Database
from db.engines import Engines
from db.ledger import Ledger
from stepwell.contracts.operators import OperatorNote, PauseNote
from stepwell.events import CheckpointSaved, TurnRecorded
from stepwell.events.streams import weights_stream
from tests.chaos.driven_trainer import DrivenTrainer, Moment, driven_trainer, stop_process
from tests.chaos.own_services import about_to_train
from tests.chaos.own_worker import own_worker
from tests.recorded_batches import record_batches, recorded_recipe
from tests.stack.steering import Helm
from tests.stack.tiny_run import Start
from tests.stack.trainer_processes import digests_of, undisturbed
from workers.services.addresses import Addresses

pytestmark = pytest.mark.timeout(600)

EVERY = 2
"""Versions between checkpoints."""
LARGE = 10
"""Prompts of a step that takes long enough to be hit in the middle."""


@pytest_asyncio.fixture(loop_scope="session")
async def trainer(
    services: Addresses, ledger: Ledger, services_home: Path, tmp_path: Path
) -> AsyncIterator[DrivenTrainer]:
    """A trainer worker."""
    async with driven_trainer(services, ledger, services_home, tmp_path) as driven:
        yield driven


async def checkpoints(ledger: Ledger, run: str) -> list[int]:
    """Versions with a complete checkpoint."""
    events = [each.event for each in await ledger.read(weights_stream(run))]
    return [event.version for event in events if isinstance(event, CheckpointSaved)]


# Version s + 1 is due for a checkpoint at odd steps. A step between two kills lets a worker hold its version in memory.
EVERY_MOMENT: dict[int, Moment] = {0: "started", 1: "saving", 3: "computing", 4: "trained", 5: "uploading", 7: "saved"}
SOME: dict[int, Moment] = {1: "saving", 3: "computing", 5: "uploading"}


@pytest.mark.parametrize(
    "moments", [SOME, pytest.param(EVERY_MOMENT, marks=pytest.mark.long)], ids=["some moments", "every moment"]
)
async def test_trainer_killed_in_a_step_applies_it_once(
    moments: dict[int, Moment], trainer: DrivenTrainer, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]
) -> None:
    prompts = [LARGE if moments.get(step) == "computing" else 2 for step in range(max(moments) + 2)]
    run = fresh()
    # Tokens of its own: equal checkpoints of another run would be in the store already.
    recorded = await record_batches(ledger, blobs, run, recorded_recipe(checkpoint_every=EVERY), prompts, seed=run)

    def strike() -> None:
        trainer.kill_worker()
        trainer.start_worker()

    await trainer.train(run, -1)
    for step in range(len(prompts)):
        if step in moments:
            made = await trainer.struck(run, step, moments[step], strike)
        else:
            made = await trainer.train(run, step)
        assert made.version == step + 1
    assert len(trainer.workers) == 1 + len(moments)
    assert await digests_of(ledger, run) == undisturbed(recorded)[1:]
    # Each checkpoint that a kill prevented was made up for when its version was held again.
    assert await checkpoints(ledger, run) == list(range(0, len(prompts) + 1, EVERY))


@pytest.mark.long
async def test_trainer_that_stalls_changes_nothing_when_it_comes_back(
    trainer: DrivenTrainer, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]
) -> None:
    recorded = await record_batches(ledger, blobs, fresh(), recorded_recipe(checkpoint_every=EVERY), [2, LARGE, 2])
    run = recorded.run
    await trainer.train(run, -1)
    await trainer.train(run, 0)
    stalled = trainer.process

    def strike() -> None:
        stop_process(stalled)
        trainer.start_worker()

    await trainer.struck(run, 1, "computing", strike)
    before = [each.envelope.hash for each in await ledger.read(weights_stream(run))]
    stalled.resume()
    await trainer.train(run, 2)
    await trainer.until_idle(stalled)
    recorded_now = await ledger.read(weights_stream(run))
    assert [each.envelope.hash for each in recorded_now][: len(before)] == before
    assert await digests_of(ledger, run) == undisturbed(recorded)[1:]


@pytest.mark.long
@pytest.mark.parametrize("strike", ["SIGKILL", "SIGSTOP"])
async def test_rank_lost_in_the_middle_of_a_step_costs_the_attempt_and_no_bit(
    strike: str, trainer: DrivenTrainer, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]
) -> None:
    recipe = recorded_recipe(checkpoint_every=EVERY, ranks=2, rank_timeout_s=5)
    recorded = await record_batches(ledger, blobs, fresh(), recipe, [2, LARGE, 2])
    run = recorded.run
    await trainer.train(run, -1)
    await trainer.train(run, 0)
    (rank,) = trainer.ranks()
    await trainer.struck(run, 1, "computing", rank.kill if strike == "SIGKILL" else rank.suspend)
    lost = await trainer.last_failure(run, 1)
    assert "rank 1 of the trainer" in lost or "a rank was lost" in lost
    await trainer.train(run, 2)
    (other,) = trainer.ranks()
    assert other.pid != rank.pid
    assert not rank.is_running()
    assert len(trainer.workers) == 1, "the worker itself went on"
    assert await digests_of(ledger, run) == undisturbed(recorded)[1:]
    worker = trainer.process
    trainer.kill_worker()
    other.wait(timeout=10)
    assert not worker.is_running()


@pytest.mark.long
async def test_worker_of_two_ranks_is_killed_and_another_goes_on(
    trainer: DrivenTrainer, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]
) -> None:
    recipe = recorded_recipe(checkpoint_every=EVERY, ranks=2, rank_timeout_s=20)
    recorded = await record_batches(ledger, blobs, fresh(), recipe, [2, LARGE, 2])
    run = recorded.run
    await trainer.train(run, -1)
    await trainer.train(run, 0)
    (rank,) = trainer.ranks()

    def strike() -> None:
        trainer.kill_worker()
        trainer.start_worker()

    await trainer.struck(run, 1, "computing", strike)
    rank.wait(timeout=10)
    await trainer.train(run, 2)
    assert await digests_of(ledger, run) == undisturbed(recorded)[1:]


async def until_engines(engines: Engines, run: str, count: int) -> None:
    """Waits until so many engines of a run are alive."""
    deadline = time.monotonic() + 120.0
    while len(await engines.live(run)) < count:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


@pytest.mark.long
async def test_run_of_two_engines_and_two_ranks_that_loses_one_ends_as_an_undisturbed_one(
    start_run: Start, helm: Helm, connections: Database, services_home: Path, tmp_path: Path
) -> None:
    settings = ("run.max_steps=4", "trainer.ranks=2", "trainer.packing.micro_batch_tokens=512")
    straight = start_run("two-ranks", *settings)
    assert await straight.finish() == 0, straight.output
    run = start_run("lost-rank", *settings)
    await helm.until(run, lambda progress: True)
    await helm.ask(run.name, "pause", PauseNote(reason="an engine is to come"))
    with own_worker(services_home, tmp_path / "engine.log", "engine", "--run", run.name):
        await until_engines(Engines(connections), run.name, 2)
        await helm.ask(run.name, "resume", OperatorNote(reason="it is here"))
        async with about_to_train(run, 3):
            trainer = run.worker("trainer")
            (rank,) = [child for child in trainer.children() if "rank_process" in " ".join(child.cmdline())]
            rank.kill()
        assert await run.finish() == 0, run.output
    assert "worker trainer (pid" not in run.output, "the worker itself went on"
    turns = [each.event for each in await run.events() if isinstance(each.event, TurnRecorded)]
    assert len({turn.engine for turn in turns}) == 2
    assert await run.outcome() == await straight.outcome()
    assert run.verify().returncode == 0
    assert run.leftovers() == []
