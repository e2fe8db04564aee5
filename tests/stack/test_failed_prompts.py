"""Prompts that fail: replaced from the reserve, or left out of a step that is smaller, never scored."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from activities.grading import GradingActivities
from activities.run import RunActivities
from activities.seals import Sealer
from activities.stores import Stores
from db.blobs import BlobStore
from db.database import Database
from db.engines import Engines
from db.ledger import Ledger
from db.recorded import Recorded
from stepwell.contracts.operators import GateNote, StopNote
from stepwell.contracts.rollout import FailRolloutsRequest, FailureKind, RolloutFailure
from stepwell.contracts.run import DispatchRequest, StepRef
from stepwell.events import (
    AttemptOpened,
    GroupClosed,
    PromptReplaced,
    RolloutFailed,
    RolloutGraded,
    StepAdmitted,
    StepCompleted,
    StepDispatched,
)
from stepwell.events.group_closed import Fate
from stepwell.events.streams import prompt_stream, run_stream, seal_stream
from stepwell.recipe.loading import load_recipe
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.signing import SigningKeys
from tests.stack.steering import Helm
from tests.stack.tiny_run import RECIPE, Start
from workers.runs import find_or_create

pytestmark = pytest.mark.timeout(400)


async def test_prompts_that_do_not_fit_are_quarantined_and_replaced_while_the_reserve_lasts(
    start_run: Start, ledger: Ledger
) -> None:
    run = start_run("reserve", "agent.max_context_tokens=21", "failures.reserve=3", "validation.tasks=1", *UNVALIDATED)
    assert await run.finish() == 0, run.output
    events = [each.event for each in await ledger.read(run_stream(run.name))]
    replaced = [event for event in events if isinstance(event, PromptReplaced)]
    assert replaced, run.output
    sealed = [each.event.key() for each in await ledger.read(seal_stream(run.name))]
    completed = [f"head/{event.step}" for event in events if isinstance(event, StepCompleted)]
    assert sealed == ["declared", *completed, "head/finished"]
    for event in replaced:
        closing = (await ledger.read(prompt_stream(run.name, str(event.step), event.replaces)))[-1].event
        assert isinstance(closing, GroupClosed)
        assert closing.fate is Fate.QUARANTINED
        assert "context" in closing.cause
        assert closing.scores == [None] * 4
    assert replaced[0].prompt == 2
    assert run.verify().returncode == 0, run.verify().stdout


async def test_a_group_that_does_not_end_is_closed_by_its_deadline_and_an_operator_is_asked(
    start_run: Start, helm: Helm, ledger: Ledger
) -> None:
    run = start_run("deadline", "run.samples_per_prompt=16", "failures.group_timeout_s=1", *UNVALIDATED)
    await run.until(lambda events: any(isinstance(each.event, StepDispatched) for each in events))
    engine = run.worker("engine")
    engine.suspend()  # for less time than its supervisor grants it
    asked = await helm.until(run, lambda progress: bool(progress.holds))
    engine.resume()
    assert asked.holds[0].hold == "smaller/0"
    assert "group_timeout_s = 1" in asked.holds[0].cause
    await helm.ask(run.name, "approve", GateNote(reason="known", gate="smaller/0"))
    await helm.until(run, lambda progress: progress.version > 0)
    await helm.ask(run.name, "stop", StopNote(reason="seen enough", at="now"))
    assert await run.finish() == 0, run.output
    admitted = [each.event for each in await ledger.read(run_stream(run.name)) if isinstance(each.event, StepAdmitted)]
    assert admitted[0].step == 0
    assert admitted[0].rollouts < 2 * 16
    rollouts = await ledger.read_prefix(f"rollout/{run.name}/0/")
    failed = [each.event for each in rollouts if isinstance(each.event, RolloutFailed)]
    assert failed
    assert {event.failure for event in failed} == {"infra"}
    assert run.verify().returncode == 0, run.verify().stdout


async def test_a_replacement_that_nobody_heard_of_is_told_again_and_not_made_twice(
    connections: Database, blobs: BlobStore, ledger: Ledger, tmp_path: Path
) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE)
    recipe = load_recipe(tmp_path / "tiny.toml", ["failures.reserve=2"])
    stores = Stores(ledger, blobs, actor="control:test")
    run = (await find_or_create(stores, recipe, f"replaced-{uuid.uuid4().hex[:8]}")).name
    sealer, step = Sealer(stores, SigningKeys(tmp_path)), StepRef(run=run, step=0)
    activities = RunActivities(stores, Engines(connections), sealer)

    async def close(prompt: int, fate: Fate) -> None:
        closing = GroupClosed(fate=fate, scores=[], children=[], rollout_facts="f" * 64, cause="as the test says")
        await stores.append_next(prompt_stream(run, "0", prompt), closing)

    await activities.dispatch_step(DispatchRequest(run=run, step=0, version=0, settings={}))
    await close(0, Fate.QUARANTINED)
    await close(1, Fate.TRAINED)
    assert (await activities.replace_prompts(step)).added == 1
    assert (await activities.replace_prompts(step)).added == 1, "the answer was lost, and is asked for again"
    again = await activities.dispatch_step(DispatchRequest(run=run, step=0, version=0, settings={}))
    assert [prompt.prompt for prompt in again.open] == [2]
    await close(2, Fate.ABANDONED)
    assert (await activities.replace_prompts(step)).added == 1
    await close(3, Fate.TRAINED)
    told = await activities.replace_prompts(step)
    assert (told.added, told.trained) == (0, 2)
    replaced = [each.event for each in await ledger.read(run_stream(run)) if isinstance(each.event, PromptReplaced)]
    assert [(event.replaces, event.prompt) for event in replaced] == [(0, 2), (2, 3)]


async def test_a_rollout_that_is_scored_while_it_is_failed_keeps_its_score(
    connections: Database, blobs: BlobStore, fresh: Callable[[], str]
) -> None:
    stream = f"rollout/{fresh()}/0/0/0"
    opened = AttemptOpened(attempt="a", worker="sandbox:here", resumed_at=0)
    graded = RolloutGraded(verdict_key="k", score=1.0, timed_out=False, verdict_head="v", reused=True)

    class Overtaken(Ledger):
        """An attempt writes its score right after the stream was looked at."""

        async def read(self, stream: str, from_seq: int = 0) -> list[Recorded]:
            found = await super().read(stream, from_seq)
            if len(found) == 1:
                await self.append(stream, [graded], expected_seq=1, actor="sandbox:attempt")
            return found

    ledger = Overtaken(connections, blobs)
    await ledger.append(stream, [opened], expected_seq=0, actor="sandbox:attempt")
    grading = GradingActivities(Stores(ledger, blobs, actor="sandbox:group"), BubblewrapFactory(Path()))
    failure = RolloutFailure(stream=stream, kind=FailureKind.INFRA, cause="the group's time is over")
    await grading.fail_rollouts(FailRolloutsRequest(run="r", failures=(failure,)))
    assert [type(each.event) for each in await ledger.read(stream)] == [AttemptOpened, RolloutGraded]


UNVALIDATED = ("validation.every=50",)
"""No version of a short run is validated, but the last."""
