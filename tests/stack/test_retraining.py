"""Recorded steps trained again: to the bit where that is promised, else with a distance."""

from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_asyncio

from activities.retraining import Outcome, Retraining
from activities.stores import Stores
from activities.weights_record import NoVersion, WeightsRecord
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.objects import ObjectStore, S3Address
from stepwell.events import CheckpointSaved, StepTrained
from stepwell.events.base import Event
from tests.recorded_batches import record_batches, recorded_recipe
from tests.stack.database import DatabaseUrls
from tests.stack.trainer_processes import ACTOR, Trainers, digests_of, events_of

PROMPTS = [2, 2, 2]


class Audit:
    """Trains steps of a run again, as an auditor with no more than the right to read."""

    def __init__(self, stores: Stores, folder: Path) -> None:
        self._stores = stores
        self._folder = folder

    async def of(self, run: str, *steps: int) -> list:
        """Each of the steps, in one process."""
        retraining = Retraining(self._stores, await WeightsRecord.read(self._stores, run), self._folder)
        try:
            return [await retraining.retrain(step) for step in steps]
        finally:
            await retraining.close()


@pytest.fixture
async def audit(database: DatabaseUrls, bucket: S3Address, tmp_path: Path):
    connections, objects = Database(database.auditor), ObjectStore(bucket)
    (tmp_path / "audit").mkdir()
    yield Audit(Stores(Ledger(connections), BlobStore(connections, objects), "auditor:test/1"), tmp_path / "audit")
    await objects.close()
    await connections.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def trained(
    ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A run of three steps, with checkpoints of the versions 0 and 2."""
    run = fresh()
    await record_batches(ledger, blobs, run, recorded_recipe(checkpoint_every=2), PROMPTS, seed=run)
    trainers = Trainers(ledger, blobs, tmp_path_factory.mktemp("trained")).another()
    await trainers.create(run)
    for step in range(3):
        await trainers.train(run, step)
    return run


@pytest.fixture
async def retold(
    trained: str, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]
) -> Callable[[Callable[[Event], Event | None]], object]:
    """The same run with another record of its weights."""

    async def of(lie: Callable[[Event], Event | None]) -> str:
        run = fresh()
        await record_batches(ledger, blobs, run, recorded_recipe(checkpoint_every=2), PROMPTS, seed=trained)
        manifests = {}
        for each in await ledger.read(f"run/{run}"):
            if each.event.type == "StepAdmitted":
                manifests[each.event.step] = each.event.manifest
        events: list[Event] = []
        for event in await events_of(ledger, trained):
            own = (
                event.model_copy(update={"manifest": manifests[event.step]})
                if isinstance(event, StepTrained)
                else event
            )
            told = lie(own)
            if told is not None:
                events.append(told)
        await ledger.append(f"weights/{run}", events, expected_seq=0, actor=ACTOR)
        return run

    return of


async def test_every_step_comes_out_to_the_bit(audit: Audit, trained: str, ledger: Ledger) -> None:
    before = await events_of(ledger, trained)
    found = await audit.of(trained, 0, 1, 2)
    assert [each.outcome for each in found] == [Outcome.EQUAL] * 3
    assert [each.computed for each in found] == await digests_of(ledger, trained)
    assert [(each.loaded, each.exact, each.environment, each.apart) for each in found] == [
        (0, 0, (), None),
        (0, 1, (), None),
        (0, 2, (), None),
    ]
    assert await events_of(ledger, trained) == before, "an audit writes nothing"


async def test_a_single_step_starts_from_the_checkpoint_before_it(audit: Audit, trained: str) -> None:
    (found,) = await audit.of(trained, 2)
    assert (found.outcome, found.loaded) == (Outcome.EQUAL, 2)


async def test_a_step_without_a_checkpoint_before_it_is_reached_through_the_recorded_batches(
    audit: Audit, retold: Callable
) -> None:
    run = await retold(lambda event: None if isinstance(event, CheckpointSaved) and event.version else event)
    (found,) = await audit.of(run, 2)
    assert (found.outcome, found.loaded, found.exact) == (Outcome.EQUAL, 0, 2)


async def test_a_step_that_was_not_trained_is_refused(audit: Audit, trained: str) -> None:
    with pytest.raises(NoVersion, match="no version 4"):
        await audit.of(trained, 3)


def another_digest(event: Event) -> Event:
    if isinstance(event, StepTrained) and event.step == 0:
        return event.model_copy(update={"digests": event.digests.model_copy(update={"exported": "e" * 64})})
    return event


async def test_a_digest_that_is_not_what_comes_out_is_told_with_both(
    audit: Audit, trained: str, retold: Callable, ledger: Ledger
) -> None:
    found = await audit.of(await retold(another_digest), 0, 1)
    assert [each.outcome for each in found] == [Outcome.DIFFERENT, Outcome.EQUAL]
    assert found[0].recorded.exported == "e" * 64
    assert found[0].computed == (await digests_of(ledger, trained))[0]
    assert found[0].apart is not None
    assert found[0].apart.distance.max == 0.0, "the recorded weights are those that come out; their digest is not"


def elsewhere(event: Event) -> Event:
    """As another machine would have recorded it: in an environment of its own, with bits of its own."""
    if not isinstance(event, StepTrained):
        return event
    digests = event.digests.model_copy(update={"master": "a" * 64, "exported": "b" * 64})
    return event.model_copy(
        update={"digests": digests, "environment": {**event.environment, "processor": "another processor"}}
    )


async def test_in_another_environment_other_bits_are_measured(audit: Audit, retold: Callable) -> None:
    run = await retold(lambda event: None if event.key() == "checkpoint/2" else elsewhere(event))
    found = await audit.of(run, 0, 1)
    assert [each.outcome for each in found] == [Outcome.WITHIN] * 2
    assert all("another processor recorded" in each.environment[0] for each in found)
    assert [each.exact for each in found] == [0, 0]
    first, second = (each.apart for each in found)
    assert first.distance.max == second.distance.max == 0.0
    assert second.tolerance.max > 1.5 * first.tolerance.max, "it grows with the steps that are not known to the bit"


async def test_in_another_environment_weights_that_are_far_away_are_told(audit: Audit, retold: Callable) -> None:
    exports: dict[int, str] = {}

    def swapped(event: Event) -> Event | None:
        if isinstance(event, StepTrained):
            exports[event.step] = event.export
        told = elsewhere(event)
        if isinstance(told, StepTrained) and told.step == 1:
            return told.model_copy(update={"export": exports[0]})
        return None if event.key() == "checkpoint/2" else told

    found = await audit.of(await retold(swapped), 1)
    assert found[0].outcome is Outcome.BEYOND
    assert found[0].apart.distance.mean > found[0].apart.tolerance.mean


async def test_in_another_environment_weights_that_are_not_stored_leave_it_open(audit: Audit, retold: Callable) -> None:
    def forgotten(event: Event) -> Event:
        told = elsewhere(event)
        return told.model_copy(update={"export": "c" * 64}) if isinstance(told, StepTrained) else told

    (found,) = await audit.of(await retold(forgotten), 0)
    assert (found.outcome, found.apart) == (Outcome.UNMEASURED, None)
