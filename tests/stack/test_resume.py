"""A rollout taken up in a real sandbox: recorded actions run again; where they do something else, it starts over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.engine_pool import LOOK_S, EnginePool
from activities.folders import put_folder
from activities.policy_files import PolicyFiles
from activities.rollout import RolloutActivities
from activities.stores import Stores
from db.blobs import BlobStore
from db.database import Database
from db.engines import Engines
from db.ledger import Ledger
from stepwell.contracts.rollout import RolloutRequest
from stepwell.events import (
    AttemptOpened,
    RolloutEnded,
    RolloutRestarted,
    RunCreated,
    TurnRecorded,
    VersionCreated,
)
from stepwell.events.numbers import WeightDigests
from stepwell.events.streams import rollout_stream, run_stream, weights_stream
from stepwell.policy.engine_http.server import listen, make_app
from stepwell.policy.engine_http.service import EngineService
from stepwell.policy.micro.shipped import FOLDER, shipped
from stepwell.recipe.loading import load_recipe
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.manifest import TaskManifest, task_blob
from stepwell.tasks.task import Task
from tests.stack.scripted_engine import ScriptedEngine

RECIPE = Path(__file__).parents[2] / "recipes" / "micro.toml"
RANDOM = 'def test_it():\n    import os\n    open("left", "wb").write(os.urandom(8))\n'
REPEATABLE = RANDOM.replace("os.urandom(8)", "bytes(8)")


@dataclass
class Stage:
    """A run with one task, a scripted engine that rollouts find by its lease, and a sandbox worker's activities."""

    request: RolloutRequest
    engine: ScriptedEngine
    activities: RolloutActivities
    ledger: Ledger
    take_engine_away: Callable[[], Awaitable[None]]

    async def attempt(self, *texts: str) -> None:
        """One attempt in which the engine says these texts and is then silent: ended there like a killed worker's."""
        self.engine.texts = list(texts)
        environment = ActivityEnvironment()
        playing = asyncio.create_task(environment.run(self.activities.run_rollout, self.request))
        self.engine.silent.clear()
        silent = asyncio.create_task(self.engine.silent.wait())
        await asyncio.wait((playing, silent), return_when=asyncio.FIRST_COMPLETED, timeout=60)
        silent.cancel()
        playing.cancel()
        await asyncio.wait([playing])
        if not playing.cancelled():
            playing.result()

    async def turns(self) -> list[TurnRecorded]:
        """Turns that stand in the stream."""
        return [event for event in await self.events() if isinstance(event, TurnRecorded)]

    async def events(self) -> list[object]:
        """What stands in the rollout's stream."""
        stream = rollout_stream(self.request.run, self.request.scope, self.request.prompt, self.request.sample)
        return [recorded.event for recorded in await self.ledger.read(stream)]


@pytest.fixture
def stage(
    ledger: Ledger, blobs: BlobStore, connections: Database, fresh: Callable[[], str], tmp_path: Path
) -> Callable[[str], object]:
    @asynccontextmanager
    async def opened(test: str) -> AsyncIterator[Stage]:
        run = fresh()
        task = Task(
            id="t",
            family="f",
            split="train",
            difficulty=1,
            issue="fix it",
            files={"app.py": "x = 1\n", "test_app.py": test},
            hidden={},
            gold={},
            grader="calls",
            expected=(),
        )
        stored = await blobs.put(task_blob(task))
        await _record_run(run, ledger, blobs)
        engine, secret = ScriptedEngine(), "s" * 32
        listening = await listen(make_app(EngineService(engine), secret))
        register = Engines(connections)
        lease = await register.register(run, run, listening.url, "engine-s", secret=secret, ttl_s=50, version=0)
        stores = Stores(ledger, blobs, actor="sandbox:t")
        pool, sandboxes = EnginePool(register), BubblewrapFactory(tmp_path / "trees")
        try:
            activities = RolloutActivities(stores, pool, sandboxes, PolicyFiles(stores))
            request = RolloutRequest(
                run=run, scope="0", purpose="train", prompt=0, sample=0, task=stored.digest, version=0
            )
            yield Stage(request, engine, activities, ledger, lambda: register.release(lease))
        finally:
            await register.release(lease)
            await pool.close()
            await sandboxes.close()
            await listening.close()

    return opened


async def _record_run(run: str, ledger: Ledger, blobs: BlobStore) -> None:
    recipe = load_recipe(RECIPE)
    manifest = await blobs.put(TaskManifest(train=(), main=(), confirm=(), heldout=()).blob())
    created = RunCreated(recipe=recipe.model_dump(mode="json"), recipe_digest=recipe.digest, task_set=manifest.digest)
    await ledger.append(run_stream(run), [created], expected_seq=0, actor="control:t")
    version_0 = VersionCreated(
        origin="shipped",
        digests=WeightDigests(master="m", exported=shipped().weights, optimiser="o"),
        export=await put_folder(blobs, FOLDER),
        probe_ids=[5, 6],
        probe=[-1.0],
        metrics={},
        environment={},
        duration_s=0.0,
    )
    await ledger.append(weights_stream(run), [version_0], expected_seq=0, actor="trainer:t")


async def test_a_repeatable_rollout_goes_on_after_its_last_recorded_turn(stage) -> None:
    async with stage(REPEATABLE) as on:
        await on.attempt("view", "test")
        await on.attempt("done")
        assert [type(event) for event in await on.events()] == [
            AttemptOpened,
            TurnRecorded,
            TurnRecorded,
            AttemptOpened,
            TurnRecorded,
            RolloutEnded,
        ]
        assert [turn.turn for turn in await on.turns()] == [0, 1, 2]
        first, second, third = on.engine.contexts
        assert third[: len(second)] == second
        assert second[: len(first)] == first


async def test_attempts_in_a_row_without_a_turn_use_the_budget_up(stage) -> None:
    async with stage(REPEATABLE) as on:
        budget = load_recipe(RECIPE).failures.rollout_attempts
        for _ in range(budget - 1):
            await on.attempt()
        await on.attempt("view")
        for _ in range(budget):
            await on.attempt()
        before = await on.events()
        with pytest.raises(ApplicationError, match=f"{budget} attempts recorded no turn") as refused:
            await on.attempt("done")
        assert refused.value.non_retryable
        assert await on.events() == before


async def test_a_rollout_whose_run_has_no_engine_is_tried_again_soon_at_no_cost(stage) -> None:
    async with stage(REPEATABLE) as on:
        await on.attempt("view")
        await on.take_engine_away()
        await asyncio.sleep(2 * LOOK_S)
        before = await on.events()
        with pytest.raises(ApplicationError, match=r"no engine of .* is alive") as refused:
            await on.attempt()
        assert not refused.value.non_retryable
        assert refused.value.next_retry_delay is not None
        assert await on.events() == before


async def test_an_action_that_does_something_else_when_it_is_run_again_starts_the_rollout_over(stage) -> None:
    async with stage(RANDOM) as on:
        await on.attempt("view", "test")
        await on.attempt("test", "done")
        kinds = [type(event) for event in await on.events()]
        assert kinds == [
            AttemptOpened,
            TurnRecorded,
            TurnRecorded,
            AttemptOpened,
            RolloutRestarted,
            TurnRecorded,
            TurnRecorded,
            RolloutEnded,
        ]
        restarted = next(event for event in await on.events() if isinstance(event, RolloutRestarted))
        assert (restarted.epoch, restarted.turn) == (1, 1)
        assert restarted.expected != restarted.found
        assert [(turn.epoch, turn.turn) for turn in await on.turns()] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        ended = (await on.events())[-1]
        assert isinstance(ended, RolloutEnded)
        assert (ended.epoch, ended.turns) == (1, 2), "only the turns of the last epoch count"
