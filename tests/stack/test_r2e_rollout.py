"""Rollouts and gradings of an R2E-Gym task, in real sandboxes of its image, as a sandbox worker carries them out."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.engine_pool import EnginePool
from activities.folders import put_folder
from activities.grading import GradingActivities
from activities.groups import GroupActivities
from activities.policy_files import PolicyFiles
from activities.rollout import RolloutActivities
from activities.stores import Stores
from db.blobs import BlobStore
from db.database import Database
from db.engines import Engines, Lease
from db.ledger import Ledger
from stepwell.agent.turn import TurnPayload, parse_changed_files
from stepwell.contracts.rollout import GradeRequest, OpenGroupsRequest, RolloutOutcome, RolloutRequest
from stepwell.contracts.run import PromptRef
from stepwell.events import RolloutEnded, RolloutGraded, RolloutRestarted, TurnRecorded, VerdictReached, VersionCreated
from stepwell.events.base import Event
from stepwell.events.numbers import WeightDigests
from stepwell.events.streams import rollout_stream, verdict_stream, weights_stream
from stepwell.policy.engine_http.server import listen, make_app
from stepwell.policy.engine_http.service import EngineService
from stepwell.recipe.loading import resolve
from stepwell.sandbox.by_image import SandboxesByImage
from stepwell.sandbox.images import ImageError
from stepwell.tasks.graders import grading_deadline_s
from stepwell.tasks.grading.verdict import verdict_key
from stepwell.tasks.r2e.judging import r2e_grader_digest
from tests.byte_tokenizer import TOKENIZER
from tests.r2e_image import make_r2e_set
from tests.r2e_rows import BROKEN, r2e_recipe
from tests.stack.harness_stage import SilentEngine
from workers.runs import find_or_create


def call(tool: str, **arguments: str) -> str:
    """What a policy says to call a tool."""
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>"


SOLVE = call("str_replace_editor", command="str_replace", path="/testbed/shapes.py", old_str="a + b", new_str="a * b")
LOOK = call("execute_bash", command="cat r2e_tests/* /r2e_tests/* /root/r2e_tests/*; git log --all --format=%s")
FINISH = call("finish", message="done")


@dataclass
class Stage:
    """A run on an imported set, an engine that says what it is told to, and a sandbox worker's activities."""

    run: str
    task: str
    engine: SilentEngine
    rollouts: RolloutActivities
    grading: GradingActivities
    groups: GroupActivities
    stores: Stores

    async def attempt(self, sample: int, *texts: str) -> RolloutOutcome | None:
        """One attempt in which the engine says these texts and is then silent: ended there like a killed worker's."""
        self.engine.texts = list(texts)
        self.engine.silent.clear()
        request = RolloutRequest(
            run=self.run, scope="0", purpose="train", prompt=0, sample=sample, task=self.task, version=0
        )
        playing = asyncio.create_task(ActivityEnvironment().run(self.rollouts.run_rollout, request))
        silent = asyncio.create_task(self.engine.silent.wait())
        await asyncio.wait((playing, silent), return_when=asyncio.FIRST_COMPLETED, timeout=240)
        silent.cancel()
        playing.cancel()
        await asyncio.wait([playing])
        return None if playing.cancelled() else playing.result()

    async def grade(self, outcome: RolloutOutcome) -> float:
        """The verdict on a rollout that waits for it."""
        request = GradeRequest(run=self.run, task=self.task, verdict_key=outcome.verdict_key, streams=(outcome.stream,))
        return (await ActivityEnvironment().run(self.grading.grade_rollout, request)).score

    async def events(self, sample: int) -> list[Event]:
        """What stands in a rollout's stream."""
        stream = rollout_stream(self.run, "0", 0, sample)
        return [recorded.event for recorded in await self.stores.ledger.read(stream)]

    async def ended(self, sample: int) -> RolloutEnded:
        """The end of a rollout."""
        return next(event for event in await self.events(sample) if isinstance(event, RolloutEnded))


@pytest.fixture
async def stage(
    ledger: Ledger, blobs: BlobStore, connections: Database, fresh: Callable[[], str], tmp_path: Path, r2e_sif: Path
) -> AsyncIterator[Stage]:
    stores = Stores(ledger, blobs, actor="sandbox:t")
    run = await _create_run(stores, fresh(), tmp_path, make_r2e_set(r2e_sif, tmp_path))
    engine, secret = SilentEngine(), "s" * 32
    serving = await listen(make_app(EngineService(engine), secret))
    register = Engines(connections)
    lease = await register.register(run, run, serving.url, "engine-r", secret=secret, ttl_s=50, version=0)
    keeping = asyncio.create_task(_keep(register, lease))
    pool, sandboxes = EnginePool(register), SandboxesByImage(tmp_path / "trees")
    task = (await stores.run_facts(run)).manifest.train[0].blob
    rollouts = RolloutActivities(stores, pool, sandboxes, PolicyFiles(stores))
    yield Stage(
        run,
        task,
        engine,
        rollouts,
        GradingActivities(stores, sandboxes),
        GroupActivities(Stores(ledger, blobs, actor="control:t")),
        stores,
    )
    keeping.cancel()
    await asyncio.wait([keeping])
    await register.release(lease)
    await pool.close()
    await sandboxes.close()
    await serving.close()


async def _keep(register: Engines, lease: Lease) -> None:
    while True:
        await asyncio.sleep(10)
        await register.renew(lease, ttl_s=50, version=0)


async def _create_run(stores: Stores, name: str, folder: Path, path: Path) -> str:
    recipe = r2e_recipe(
        path,
        agent={"tools": "codeact", "max_turns": 4, "max_context_tokens": 16_000, "max_turn_tokens": 512},
        engine={"max_context": 16_000},
    )
    creating = Stores(stores.ledger, stores.blobs, actor="control:t")
    run = (await find_or_create(creating, resolve(recipe, source="a test"), name)).name
    (folder / "policy").mkdir()
    TOKENIZER.save(str(folder / "policy" / "tokenizer.json"))
    version_0 = VersionCreated(
        origin="shipped",
        digests=WeightDigests(master="m", exported="e", optimiser="o"),
        export=await put_folder(stores.blobs, folder / "policy"),
        probe_ids=[5, 6],
        probe=[-1.0],
        metrics={},
        environment={},
        duration_s=0.0,
    )
    await stores.ledger.append(weights_stream(run), [version_0], expected_seq=0, actor="trainer:t")
    return run


async def test_a_rollout_is_played_taken_up_and_graded_in_its_image(stage: Stage) -> None:
    assert await stage.attempt(0, LOOK) is None, "its worker dies after a turn"
    outcome = await stage.attempt(0, SOLVE, FINISH)
    assert outcome is not None
    events, ended = await stage.events(0), await stage.ended(0)
    assert [event.turn for event in events if isinstance(event, TurnRecorded)] == [0, 1, 2]
    assert not [event for event in events if isinstance(event, RolloutRestarted)]
    changed = parse_changed_files(await stage.stores.blobs.get(ended.changed))
    assert changed == {"shapes.py": BROKEN.replace("+", "*").encode()}
    task = await stage.stores.task(stage.task)
    assert ended.verdict_key == verdict_key(task.digest, ended.tree, r2e_grader_digest())
    assert (outcome.score, await stage.grade(outcome)) == (None, 1.0)
    verdict = (await stage.stores.ledger.read(verdict_stream(outcome.verdict_key)))[0].event
    assert isinstance(verdict, VerdictReached)
    assert (verdict.tree, verdict.grader, verdict.task) == (ended.tree, r2e_grader_digest(), stage.task)

    again = await stage.attempt(1, SOLVE, FINISH)
    assert again is not None
    assert (again.score, (await stage.ended(1)).tree) == (1.0, ended.tree), "a tree that was graded is not graded again"
    nothing = await stage.attempt(2, FINISH)
    assert nothing is not None
    assert (await stage.ended(2)).tree not in ("", ended.tree)
    assert await stage.grade(nothing) == 0.0
    graded = [event for event in await stage.events(2) if isinstance(event, RolloutGraded)]
    assert [(event.score, event.reused) for event in graded] == [(0.0, False)]


async def test_the_agent_is_told_where_it_works_and_nothing_that_is_hidden(stage: Stage) -> None:
    await stage.attempt(0, LOOK, FINISH)
    turns = [event for event in await stage.events(0) if isinstance(event, TurnRecorded)]
    payloads = [TurnPayload.model_validate_json(await stage.stores.blobs.get(turn.payload)) for turn in turns]
    prompt = TOKENIZER.decode(list(payloads[0].delta_ids), skip_special_tokens=False)
    assert "The repository in /testbed has the problem" in prompt
    assert "/work" not in prompt
    assert payloads[0].observation.splitlines() == [
        "cat: 'r2e_tests/*': No such file or directory",
        "cat: '/r2e_tests/*': No such file or directory",
        "cat: '/root/r2e_tests/*': No such file or directory",
        "The repository as the task begins",
        "[Command finished with exit code 0]",
    ]


async def test_an_image_that_is_another_than_recorded_is_not_used(stage: Stage, tmp_path: Path) -> None:
    image = next((tmp_path / "images" / "r2egym").glob("python-pillow*"))
    image.unlink()
    with pytest.raises(ImageError, match=r"no image .*: put it there"):
        await stage.attempt(0, FINISH)
    image.write_bytes(b"another")
    with pytest.raises(ImageError, match=r"has the SHA-256 .* is wanted"):
        await stage.attempt(0, FINISH)
    assert not [event for event in await stage.events(0) if isinstance(event, RolloutEnded)]


async def test_a_group_is_told_how_long_a_grading_in_an_image_may_take(stage: Stage) -> None:
    opening = OpenGroupsRequest(
        run=stage.run, scope="0", version=0, prompts=(PromptRef(prompt=0, task=stage.task),), samples=2
    )
    dispatch = await ActivityEnvironment().run(stage.groups.open_groups, opening)
    task = await stage.stores.task(stage.task)
    assert [prompt.grading_s for prompt in dispatch.open] == [grading_deadline_s(task)]
