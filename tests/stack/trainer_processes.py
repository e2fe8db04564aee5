"""Trainer processes of a recorded run, one after the other, and what they leave in the ledger."""

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

from temporalio.testing import ActivityEnvironment

from activities.stores import Stores
from activities.training import TrainingActivities
from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.contracts.run import RunRef, StepRef, VersionRef
from stepwell.events import StepTrained
from stepwell.events.base import Event
from stepwell.events.numbers import WeightDigests
from stepwell.events.streams import weights_stream
from stepwell.policy.micro.shipped import FOLDER
from stepwell.policy.trainers.start import start_trainer
from tests.recorded_batches import RecordedBatches

ACTOR = "trainer:test/1"


class Trainers:
    """Trainer processes of a run, one after the other."""

    def __init__(self, ledger: Ledger, blobs: BlobStore, folder: Path) -> None:
        self._ledger = ledger
        self._blobs = blobs
        self._folder = folder
        self._count = itertools.count()
        self._held: TrainingActivities | None = None

    def another(self) -> "Trainers":
        """The process died, and a new one takes over."""
        cache = self._folder / str(next(self._count))
        cache.mkdir()
        self._held = TrainingActivities(Stores(self._ledger, self._blobs, ACTOR), cache, self._folder / "models")
        return self

    async def create(self, run: str) -> VersionRef:
        """Version 0."""
        assert self._held is not None
        return await ActivityEnvironment().run(self._held.create_policy, RunRef(run=run))

    async def train(self, run: str, step: int) -> VersionRef:
        """A step."""
        assert self._held is not None
        return await ActivityEnvironment().run(self._held.train_step, StepRef(run=run, step=step))


async def events_of(ledger: Ledger, run: str) -> list[Event]:
    """What stands in the stream of weights."""
    return [each.event for each in await ledger.read(weights_stream(run))]


async def copy_weights(ledger: Ledger, source: str, target: str, kept: Callable[[Event], bool]) -> None:
    """Puts another run where a kill has left it: with these events of the first, and no others."""
    events = [event for event in await events_of(ledger, source) if kept(event)]
    await ledger.append(weights_stream(target), events, expected_seq=0, actor=ACTOR)


async def digests_of(ledger: Ledger, run: str) -> list[WeightDigests]:
    """Digests of the versions that steps made, as recorded."""
    return [event.digests for event in await events_of(ledger, run) if isinstance(event, StepTrained)]


def undisturbed(recorded: RecordedBatches, rates: Mapping[int, float] | None = None) -> list[WeightDigests]:
    """Digests of each version, from the trainer alone: no worker, no stores.

    Args:
        recorded: what it trains.
        rates: learning rates of steps that have another than the recipe's.
    """
    usual = recorded.recipe.optimiser
    alone = start_trainer(recorded.recipe, FOLDER)
    try:
        digests = [alone.digests()]
        for step, batch in enumerate(recorded.batches):
            rate = (rates or {}).get(step, usual.learning_rate)
            alone.step(batch, usual.model_copy(update={"learning_rate": rate}))
            digests.append(alone.digests())
        return digests
    finally:
        alone.close()
