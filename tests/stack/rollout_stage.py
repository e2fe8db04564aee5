"""A stage for one rollout: a run that is recorded as far as a rollout needs it, an engine that says what a test tells
it to and is found by its lease, and the activities of a sandbox worker."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import pytest
from temporalio.testing import ActivityEnvironment

from activities.engine_pool import EnginePool
from activities.folders import put_folder
from activities.harness_rollout import HarnessHost
from activities.policy_files import PolicyFiles
from activities.rollout import RolloutActivities
from activities.stores import Stores
from db.blobs import BlobStore
from db.database import Database
from db.engines import Engines, Lease
from db.ledger import Ledger
from stepwell.agent.turn import TurnPayload
from stepwell.contracts.rollout import RolloutRequest
from stepwell.events import RolloutEnded, RunCreated, TurnRecorded, VersionCreated
from stepwell.events.base import Event
from stepwell.events.numbers import WeightDigests
from stepwell.events.streams import rollout_stream, run_stream, weights_stream
from stepwell.policy.engine_http.server import listen, make_app
from stepwell.policy.engine_http.service import EngineService
from stepwell.policy.protocol import Engine
from stepwell.recipe.recipe import Recipe
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.manifest import TaskManifest, task_blob
from stepwell.tasks.task import Task

TTL_S = 50
"""Of the engine's lease."""


class ToldEngine(Engine, Protocol):
    """An engine that says its texts and is silent then."""

    texts: list[str]
    """What it has yet to say."""
    silent: asyncio.Event
    """Set when it is asked and has nothing more to say; it answers no more."""


E = TypeVar("E", bound=ToldEngine)


@dataclass
class Stage(Generic[E]):
    """The rollout and what stands around it."""

    request: RolloutRequest
    engine: E
    activities: RolloutActivities
    ledger: Ledger
    blobs: BlobStore
    take_engine_away: Callable[[], Awaitable[None]]

    async def attempt(self, *texts: str) -> None:
        """One attempt in which the engine says these texts and is then silent: ended there like a killed worker's."""
        self.engine.texts = list(texts)
        self.engine.silent.clear()
        playing = asyncio.create_task(ActivityEnvironment().run(self.activities.run_rollout, self.request))
        silent = asyncio.create_task(self.engine.silent.wait())
        await asyncio.wait((playing, silent), return_when=asyncio.FIRST_COMPLETED, timeout=120)
        silent.cancel()
        playing.cancel()
        await asyncio.wait([playing])
        if not playing.cancelled():
            playing.result()

    async def events(self) -> list[Event]:
        """What stands in the rollout's stream."""
        stream = rollout_stream(self.request.run, self.request.scope, self.request.prompt, self.request.sample)
        return [recorded.event for recorded in await self.ledger.read(stream)]

    async def turns(self) -> list[TurnRecorded]:
        """Recorded turns of every epoch."""
        return [event for event in await self.events() if isinstance(event, TurnRecorded)]

    async def payloads(self) -> list[TurnPayload]:
        """What was stored of each."""
        return [TurnPayload.model_validate_json(await self.blobs.get(turn.payload)) for turn in await self.turns()]

    async def ended(self) -> RolloutEnded:
        """The rollout's end."""
        return next(event for event in await self.events() if isinstance(event, RolloutEnded))


@dataclass(frozen=True)
class Backstage:
    """What stages are made of."""

    ledger: Ledger
    blobs: BlobStore
    connections: Database
    fresh: Callable[[], str]
    folder: Path

    @asynccontextmanager
    async def open(
        self, recipe: Recipe, policy: Path, task: Task, engine: E, harnesses: HarnessHost | None = None
    ) -> AsyncIterator[Stage[E]]:
        """Opens a stage.

        Args:
            recipe: the run's.
            policy: folder of its version 0.
            task: the rollout's.
            engine: what the rollout finds.
            harnesses: for a recipe that names one.
        """
        run, secret = self.fresh(), "s" * 32
        stored = await self.blobs.put(task_blob(task))
        await self._record_run(run, recipe, policy)
        listening = await listen(make_app(EngineService(engine), secret))
        register = Engines(self.connections)
        lease = await register.register(run, run, listening.url, "engine-s", secret=secret, ttl_s=TTL_S, version=0)
        keeping = asyncio.create_task(_keep(register, lease))
        stores = Stores(self.ledger, self.blobs, actor="sandbox:t")
        pool, sandboxes = EnginePool(register), BubblewrapFactory(self.folder / "trees")

        async def take_engine_away() -> None:
            keeping.cancel()
            await asyncio.wait([keeping])
            await register.release(lease)

        try:
            activities = RolloutActivities(stores, pool, sandboxes, PolicyFiles(stores), harnesses)
            request = RolloutRequest(
                run=run, scope="0", purpose="train", prompt=0, sample=0, task=stored.digest, version=0
            )
            yield Stage(request, engine, activities, self.ledger, self.blobs, take_engine_away)
        finally:
            await take_engine_away()
            await pool.close()
            await sandboxes.close()
            await listening.close()

    async def _record_run(self, run: str, recipe: Recipe, policy: Path) -> None:
        nothing = await self.blobs.put(TaskManifest(train=(), main=(), confirm=(), heldout=()).blob())
        created = RunCreated(
            recipe=recipe.model_dump(mode="json"), recipe_digest=recipe.digest, task_set=nothing.digest
        )
        await self.ledger.append(run_stream(run), [created], expected_seq=0, actor="control:t")
        version_0 = VersionCreated(
            origin="shipped",
            digests=WeightDigests(master="m", exported="e", optimiser="o"),
            export=await put_folder(self.blobs, policy),
            probe_ids=[5, 6],
            probe=[-1.0],
            metrics={},
            environment={},
            duration_s=0.0,
        )
        await self.ledger.append(weights_stream(run), [version_0], expected_seq=0, actor="trainer:t")


def small_task(**files: str) -> Task:
    """A task of one file and these."""
    return Task(
        id="t",
        family="f",
        split="train",
        difficulty=1,
        issue="fix it",
        files={"app.py": "x = 1\n", **files},
        hidden={},
        gold={},
        grader="calls",
        expected=(),
    )


@pytest.fixture
def backstage(
    ledger: Ledger, blobs: BlobStore, connections: Database, fresh: Callable[[], str], tmp_path: Path
) -> Backstage:
    """The session's stores, and a folder of the test's own."""
    return Backstage(ledger, blobs, connections, fresh, tmp_path)


async def _keep(register: Engines, lease: Lease) -> None:
    while True:
        await asyncio.sleep(TTL_S / 5)
        await register.renew(lease, ttl_s=TTL_S, version=0)
