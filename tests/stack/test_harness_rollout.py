"""A rollout that a program outside plays: recorded call by call, and taken up by another worker."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from temporalio.testing import ActivityEnvironment

from activities.engine_pool import EnginePool
from activities.folders import put_folder
from activities.harness_rollout import HarnessFailed, HarnessHost
from activities.policy_files import PolicyFiles
from activities.rollout import RolloutActivities
from activities.stores import Stores
from db.blobs import BlobStore
from db.database import Database
from db.engines import Engines, Lease
from db.ledger import Ledger
from stepwell.agent.gateway.server import Gateway
from stepwell.agent.turn import TurnPayload
from stepwell.contracts.rollout import RolloutRequest
from stepwell.events import RolloutEnded, RolloutRestarted, RunCreated, TurnRecorded, VersionCreated
from stepwell.events.numbers import WeightDigests
from stepwell.events.streams import rollout_stream, run_stream, weights_stream
from stepwell.policy.engine_http.server import listen, make_app
from stepwell.policy.engine_http.service import EngineService
from stepwell.policy.protocol import GenerateRequest, Generation
from stepwell.recipe.loading import load_recipe
from stepwell.recipe.recipe import Recipe
from stepwell.rl.rows import train_rows
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.manifest import TaskManifest, task_blob
from stepwell.tasks.task import Task
from tests.byte_tokenizer import TOKENIZER
from tests.stack.played_engine import PlayedEngine
from workers.harness import run_harness

RECIPE = Path(__file__).parents[2] / "recipes" / "smollm2.toml"
HARNESS = Path(__file__).with_name("scripted_harness.py")
TASK = Task(
    id="t",
    family="f",
    split="train",
    difficulty=1,
    issue="fix it",
    files={"app.py": "x = 1\n"},
    hidden={},
    gold={},
    grader="calls",
    expected=(),
)


class SilentEngine(PlayedEngine):
    """Says its texts and then nothing more."""

    def __init__(self) -> None:
        super().__init__(TOKENIZER, "<|im_end|>")
        self.silent = asyncio.Event()

    async def generate(self, request: GenerateRequest) -> Generation:
        if not self.texts:
            self.silent.set()
            await asyncio.get_running_loop().create_future()
        return await super().generate(request)


@dataclass
class Stage:
    """A run whose recipe names a harness, and a sandbox worker's activities."""

    request: RolloutRequest
    engine: SilentEngine
    activities: RolloutActivities
    ledger: Ledger
    blobs: BlobStore
    homes: Path

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
        assert not list(self.homes.iterdir()), "no harness's folder is left"
        assert not [child for child in psutil.Process().children(recursive=True) if str(HARNESS) in child.cmdline()]
        if not playing.cancelled():
            playing.result()

    async def events(self) -> list[object]:
        """What stands in the rollout's stream."""
        stream = rollout_stream(self.request.run, self.request.scope, self.request.prompt, self.request.sample)
        return [recorded.event for recorded in await self.ledger.read(stream)]

    async def turns(self) -> list[tuple[TurnRecorded, TurnPayload]]:
        """Recorded turns of every epoch, with what was stored of them."""
        turns = [event for event in await self.events() if isinstance(event, TurnRecorded)]
        return [(turn, TurnPayload.model_validate_json(await self.blobs.get(turn.payload))) for turn in turns]

    async def ended(self) -> RolloutEnded:
        """The rollout's end."""
        return next(event for event in await self.events() if isinstance(event, RolloutEnded))


@pytest.fixture
def stage(ledger: Ledger, blobs: BlobStore, connections: Database, fresh: Callable[[], str], tmp_path: Path):
    @asynccontextmanager
    async def opened(*arguments: str, **agent: object) -> AsyncIterator[Stage]:
        run = fresh()
        stored = await blobs.put(task_blob(TASK))
        await _record_run(run, ledger, blobs, tmp_path, [sys.executable, str(HARNESS), *arguments], agent)
        engine, secret = SilentEngine(), "s" * 32
        engine_side = await listen(make_app(EngineService(engine), secret))
        register = Engines(connections)
        lease = await register.register(run, run, engine_side.url, "engine-s", secret=secret, ttl_s=50, version=0)
        keeping = asyncio.create_task(_keep(register, lease))
        stores = Stores(ledger, blobs, actor="sandbox:t")
        pool, sandboxes, gateway = EnginePool(register), BubblewrapFactory(tmp_path / "trees"), Gateway()
        listening = await listen(gateway.app())
        host = HarnessHost(gateway, listening.url, tmp_path / "homes", run_harness)
        try:
            activities = RolloutActivities(stores, pool, sandboxes, PolicyFiles(stores), host)
            request = RolloutRequest(
                run=run, scope="0", purpose="train", prompt=0, sample=0, task=stored.digest, version=0
            )
            yield Stage(request, engine, activities, ledger, blobs, tmp_path / "homes")
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])
            await listening.close()
            await register.release(lease)
            await pool.close()
            await sandboxes.close()
            await engine_side.close()

    return opened


async def _keep(register: Engines, lease: Lease) -> None:
    while True:
        await asyncio.sleep(10)
        await register.renew(lease, ttl_s=50, version=0)


async def _record_run(
    run: str, ledger: Ledger, blobs: BlobStore, folder: Path, harness: list[str], agent: dict[str, object]
) -> None:
    raw = load_recipe(RECIPE).model_dump(mode="json")
    own: dict[str, object] = {"harness": harness, "stop_when_stuck": False, "functions": None, "prompt": None}
    raw["agent"] |= own | {"max_turns": 8} | agent
    raw["policy"]["warm_up"] = None
    recipe = Recipe.model_validate(raw)
    manifest = await blobs.put(TaskManifest(train=(), main=(), confirm=(), heldout=()).blob())
    created = RunCreated(recipe=recipe.model_dump(mode="json"), recipe_digest=recipe.digest, task_set=manifest.digest)
    await ledger.append(run_stream(run), [created], expected_seq=0, actor="control:t")
    policy = folder / "policy"
    policy.mkdir()
    TOKENIZER.save(str(policy / "tokenizer.json"))
    version_0 = VersionCreated(
        origin="shipped",
        digests=WeightDigests(master="m", exported="e", optimiser="o"),
        export=await put_folder(blobs, policy),
        probe_ids=[5, 6],
        probe=[-1.0],
        metrics={},
        environment={},
        duration_s=0.0,
    )
    await ledger.append(weights_stream(run), [version_0], expected_seq=0, actor="trainer:t")


async def test_every_call_is_a_recorded_turn(stage) -> None:
    async with stage("echo y >> app.py; wc -l app.py") as on:
        await on.attempt("go on", "go on", "done")
        turns, ended = await on.turns(), await on.ended()
        assert [turn.turn for turn, _ in turns] == [0, 1, 2]
        assert [turn.tool for turn, _ in turns] == ["message"] * 3
        assert [payload.asked for _, payload in turns] == [{"temperature": 0}] * 3
        (row,) = train_rows([payload for _, payload in turns])
        assert row.content_digest() == ended.content
        assert row.token_ids == (*on.engine.played[-1].request.token_ids, *on.engine.played[-1].generation.token_ids)
        assert row.logprobs == tuple(value for each in on.engine.played for value in each.generation.logprobs)
        assert len({turn.tree for turn, _ in turns}) == 3
        assert (ended.reason, ended.turns, ended.tree) == ("finished", 3, turns[-1][0].tree)


async def test_another_worker_answers_from_the_record_and_goes_on(stage) -> None:
    async with stage("echo y >> app.py; wc -l app.py") as on:
        await on.attempt("go on", "go on")
        await on.attempt("done")
        assert len(on.engine.played) == 3, "nothing is sampled twice"
        turns = await on.turns()
        assert [(turn.epoch, turn.turn) for turn, _ in turns] == [(0, 0), (0, 1), (0, 2)]
        (row,) = train_rows([payload for _, payload in turns])
        assert row.content_digest() == (await on.ended()).content


async def test_a_harness_that_does_something_else_starts_over(stage) -> None:
    async with stage("head -c 8 /dev/urandom | base64 | tee noise") as on:
        await on.attempt("go on", "go on")
        await on.attempt("go on", "done")
        restarted = next(event for event in await on.events() if isinstance(event, RolloutRestarted))
        assert (restarted.epoch, restarted.turn) == (1, 1)
        assert [(turn.epoch, turn.turn) for turn, _ in await on.turns()] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert (await on.ended()).turns == 2


async def test_a_harness_that_ends_before_it_has_asked_again_starts_over(stage, tmp_path: Path) -> None:
    async with stage("true", str(tmp_path / "begun")) as on:
        await on.attempt("go on", "go on")
        await on.attempt("go on", "done")
        restarted = next(event for event in await on.events() if isinstance(event, RolloutRestarted))
        assert (restarted.turn, restarted.expected) == (1, "another call")
        assert (await on.ended()).turns == 1


async def test_a_conversation_that_was_condensed_is_recorded_as_rows(stage) -> None:
    async with stage("ls", "forgets") as on:
        await on.attempt("go on", "forget", "go on", "done")
        payloads = [payload for _, payload in await on.turns()]
        assert [payload.segment for payload in payloads] == [0, 0, 1, 1]
        rows, ended = train_rows(payloads), await on.ended()
        assert [row.token_ids for row in rows] == [
            (*on.engine.played[last].request.token_ids, *on.engine.played[last].generation.token_ids) for last in (1, 3)
        ]
        for row in rows:
            row.check()
        assert (ended.content, ended.total_tokens) == ("", sum(len(row.token_ids) for row in rows))


@pytest.mark.parametrize(
    ("agent", "reason", "turns"), [({"max_turns": 2}, "turns", 2), ({"wall_clock_s": 1e-6}, "wall_clock", 1)]
)
async def test_a_bound_is_the_rollouts_end(stage, agent: dict[str, object], reason: str, turns: int) -> None:
    async with stage("true", **agent) as on:
        await on.attempt(*["go on"] * 8)
        ended = await on.ended()
        assert (ended.reason, ended.turns) == (reason, turns)


async def test_a_harness_that_crashes_has_no_end_and_no_score(stage) -> None:
    async with stage("true", "crashes") as on:
        with pytest.raises(HarnessFailed, match="ended with 3"):
            await on.attempt("go on")
        assert not any(isinstance(event, RolloutEnded) for event in await on.events())


async def test_a_harness_dies_with_who_runs_it(tmp_path: Path) -> None:
    program = (
        "import asyncio, pathlib, sys\n"
        "from workers.harness import run_harness\n"
        "argv = [sys.executable, '-c', 'import os, time; print(os.getpid(), flush=True); "
        'open("pid", "w").write(str(os.getpid())); time.sleep(600)\']\n'
        "asyncio.run(run_harness(argv, environment={}, folder=pathlib.Path(sys.argv[1]), stdin=b'', timeout_s=600))\n"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(tmp_path))
    harness = psutil.Process(await asyncio.to_thread(_pid_in, tmp_path / "pid"))
    parent.kill()
    await parent.wait()
    harness.wait(timeout=30)


def _pid_in(path: Path) -> int:
    """What the file says, once it says something."""
    for _ in range(1200):
        if path.exists() and (text := path.read_text()):
            return int(text)
        time.sleep(0.05)
    raise AssertionError("the harness did not start within a minute")


async def test_a_harness_is_stopped_at_its_deadline(tmp_path: Path) -> None:
    sleeper = "import time; time.sleep(600)"
    end = await run_harness(
        [sys.executable, "-c", sleeper], environment={}, folder=tmp_path, stdin=b"y" * (1 << 20), timeout_s=1.0
    )
    assert (end.timed_out, end.returncode) == (True, -9)


async def test_the_last_words_of_a_harness_are_kept(tmp_path: Path) -> None:
    talk = "import sys; print('x' * 200_000); print(sys.stdin.read()); sys.exit(5)"
    end = await run_harness(
        [sys.executable, "-c", talk], environment={}, folder=tmp_path, stdin=b"last", timeout_s=240.0
    )
    assert (end.timed_out, end.returncode) == (False, 5)
    assert end.output.endswith("xxx\nlast\n")
    assert len(end.output) == 1 << 16
