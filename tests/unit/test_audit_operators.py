"""Rules on what operators did and on what happens beside the plain course of a run: each catches its own lie."""

from dataclasses import replace
from typing import Any

import pytest

from db.blobs import blob_digest
from stepwell.audit.verification import Verification, verify
from stepwell.events import (
    GroupOpened,
    OperatorActed,
    PromptReplaced,
    RolloutFailed,
    RunCreated,
    StepDispatched,
)
from stepwell.events.base import Event
from tests.audited_run import write_run
from tests.book import Lie, MemoryBook, Told, acts, both, dropped, failing, truth
from tests.run_plan import EVENTFUL, Plan


async def verified(lie: Lie = truth, plan: Plan = EVENTFUL) -> Verification:
    book = MemoryBook(lie=lie)
    await write_run(book, "r", plan)
    return verify(book.record("r"))


OTHER_TASK = blob_digest(b"main task 0")
FAILURES = {"failures": {"reserve": 2}}
LEFT_OUT = Plan(recipe={"failures": {"reserve": 1}}, quarantined=frozenset({(0, 1)}))
TWICE = Plan(recipe=FAILURES, quarantined=frozenset({(0, 1)}), replaced={(0, 2): 1, (0, 3): 1})

LIES: list[tuple[str, Plan, Lie, str, str]] = [
    (
        "a setting that differs from what was set",
        EVENTFUL,
        Told(StepDispatched, {"settings": {"optimiser.learning_rate": 0.5}}, step=1),
        "settings",
        "step 1 has the settings optimiser.learning_rate = 0.5, operators' acts up to then make it none or "
        "optimiser.learning_rate = 0.01",
    ),
    (
        "a setting that nobody set",
        EVENTFUL,
        acts(lambda event: event.arguments.get("key") == "optimiser.learning_rate"),
        "settings",
        "but no operator set optimiser.learning_rate",
    ),
    (
        "a setting that is taken back without an act",
        EVENTFUL,
        Told(StepDispatched, {"settings": {"run.max_staleness": 1}}, step=2),
        "settings",
        "step 2 has the settings run.max_staleness = 1, operators' acts up to then make it optimiser.learning_rate",
    ),
    (
        "a replacement that is not the reserve's",
        EVENTFUL,
        both(Told(PromptReplaced, {"task": OTHER_TASK}), Told(GroupOpened, {"task": OTHER_TASK}, where="prompt/r/0/2")),
        "curriculum",
        f"replacement 0 of the run is task {OTHER_TASK}, the reserve has there",
    ),
    (
        "a step off the curriculum",
        Plan(),
        both(
            Told(StepDispatched, {"tasks": [OTHER_TASK, blob_digest(b"train task 1")]}, step=0),
            Told(GroupOpened, {"task": OTHER_TASK}, where="prompt/r/0/0"),
        ),
        "curriculum",
        f"prompt 0 of step 0 is task {OTHER_TASK}, the run's list of tasks says {blob_digest(b'train task 0')}",
    ),
    (
        "a list of tasks that is none",
        Plan(),
        Told(RunCreated, {"task_set": OTHER_TASK}),
        "curriculum",
        "is no list of tasks",
    ),
    (
        "a replacement out of its place",
        EVENTFUL,
        Told(PromptReplaced, {"prompt": 3}),
        "replacements",
        "adds prompt 3 of step 0, wanted prompt 2",
    ),
    (
        "a prompt replaced that was trained",
        EVENTFUL,
        Told(PromptReplaced, {"replaces": 0}),
        "replacements",
        "prompt 2 of step 0 replaces prompt 0, which had not failed: trained",
    ),
    (
        "a prompt replaced twice",
        TWICE,
        truth,
        "replacements",
        "prompt 3 of step 0 replaces prompt 1, which was replaced already",
    ),
    (
        "a failed prompt that was left out though there was a reserve",
        LEFT_OUT,
        truth,
        "replacements",
        "step 0 was admitted without a prompt in place of 1 (quarantined), though 1 of the reserve were left",
    ),
    (
        "a skip that nobody asked for",
        EVENTFUL,
        acts(lambda event: event.action == "skip"),
        "skips",
        "skipped, but no operator asked for it: there is no act `skip` of it, nor a `stop` at once",
    ),
    (
        "a rollout that an operator is said to have ended",
        Plan(),
        Told(RolloutFailed, {"failure": "operator"}, where="rollout/r/0/1/2"),
        "skips",
        "ended by an operator, but its prompt was not skipped: trained",
    ),
    (
        "a rollout that has no end",
        Plan(),
        dropped(RolloutFailed, "rollout/r/0/1/2"),
        "skips",
        "its rollout rollout/r/0/1/2 has neither a score nor a failure",
    ),
]


@pytest.mark.parametrize(("plan", "lie", "rule", "part"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
async def test_a_lie_is_named_by_its_rule_and_by_no_other(plan: Plan, lie: Lie, rule: str, part: str) -> None:
    found = failing(await verified(lie, plan))
    assert found.keys() == {rule}, found
    assert part in found[rule]


async def test_a_reserve_that_the_recipe_does_not_declare_is_named() -> None:
    def lie(_: str, event: Event) -> Event:
        if not isinstance(event, RunCreated):
            return event
        return event.model_copy(update={"recipe": {**event.recipe, "failures": {"reserve": 2, "min_prompts": 2}}})

    assert failing(await verified(lie)) == {
        "curriculum": "run/r #0: its recipe declares a reserve of 2 prompts, its list of tasks has 1"
    }


async def test_a_key_that_cannot_be_set_and_a_value_that_is_none_are_named() -> None:
    book = MemoryBook()
    await write_run(book, "r", replace(EVENTFUL, finish=False))
    bad: list[dict[str, Any]] = [
        {"key": "rl.baseline", "value": 1},
        {"key": "optimiser.learning_rate", "value": -1},
        {"key": "run.seed"},
    ]
    for number, arguments in enumerate(bad):
        event = OperatorActed(action="set", arguments=arguments, who="ann", reason="x", update=f"bad{number}")
        await book.append("operator/r", event)
    result = next(result for result in verify(book.record("r")).results if result.rule == "settings")
    said = [finding.what for finding in result.findings]
    assert len(said) == 3
    assert said[0].startswith("'rl.baseline' cannot be set in a run")
    assert said[1].startswith("optimiser.learning_rate = -1")
    assert said[2] == "sets 'run.seed' to None, wanted a key and a number"


async def test_a_replacement_after_the_admission_or_of_no_step_is_named() -> None:
    book = MemoryBook()
    await write_run(book, "r", replace(LEFT_OUT, finish=False))
    task = blob_digest(b"reserve task 0")
    await book.append("run/r", PromptReplaced(step=0, prompt=2, replaces=1, task=task))
    await book.append("run/r", PromptReplaced(step=9, prompt=2, replaces=1, task=task))
    result = next(result for result in verify(book.record("r")).results if result.rule == "replacements")
    said = [finding.what for finding in result.findings]
    assert "replaces a prompt of step 9, which was not dispatched" in said
    assert "adds prompt 2 of step 0 before it was dispatched or after its admission" in said


async def test_prompts_that_a_stop_at_once_skipped_have_their_fate_and_need_no_act_of_their_own() -> None:
    verification = await verified(plan=Plan(stopped_in=1))
    assert failing(verification) == {}
    assert verification.finished == "stopped"
    without = await verified(acts(lambda event: event.action == "stop"), Plan(stopped_in=1))
    assert failing(without).keys() == {"skips", "ending"}


async def test_a_stop_at_once_does_not_excuse_a_skip_in_a_step_that_was_admitted() -> None:
    def lie(_: str, event: Event) -> Event:
        is_skip = isinstance(event, OperatorActed) and event.action == "skip"
        return event.model_copy(update={"action": "stop", "arguments": {"at": "now"}}) if is_skip else event

    assert "and its step was admitted" in failing(await verified(lie))["skips"]
