"""A step is computed again from what is recorded: as it was, and what was changed is located."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from stepwell.audit.replaying.batch import batch_of
from stepwell.audit.replaying.replay import replay
from stepwell.events import GroupClosed, GroupOpened, RolloutEnded, RolloutGraded, StepAdmitted, StepDispatched
from stepwell.events.canonical import canonical_json
from stepwell.events.group_closed import Fate
from stepwell.rl.config import GrpoConfig
from tests.audited_run import write_run
from tests.book import MemoryBook, Told
from tests.run_plan import EVENTFUL, SAMPLES, STEPS, Plan
from tests.step_records import recipe_of, record_of, replayed


async def written(plan: Plan = Plan(), told: Told | None = None) -> MemoryBook:  # noqa: B008  # it is frozen
    book = MemoryBook() if told is None else MemoryBook(told)
    await write_run(book, "r", plan)
    return book


def first(book: MemoryBook, step: int) -> str:
    return str(replayed(book, step).differences[0])


@pytest.mark.parametrize("step", range(STEPS))
async def test_a_step_as_it_was_recorded_is_computed_to_the_byte(step: int) -> None:
    book = await written()
    found = replayed(book, step)
    assert found.is_equal
    assert (found.fates, found.rollouts, found.masked) == ({Fate.TRAINED: 2}, 2 * SAMPLES, 1)
    assert batch_of(record_of(book, step), recipe_of(book)).canonical_bytes() == record_of(book, step).batch


@pytest.mark.parametrize(
    ("step", "fates", "version"),
    [
        (0, {Fate.TRAINED: 2, Fate.QUARANTINED: 1}, 0),
        (1, {Fate.TRAINED: 1, Fate.SKIPPED: 1}, 1),
        (2, {Fate.TRAINED: 2}, 1),
    ],
    ids=["replaced prompt", "skipped prompt", "stale version"],
)
async def test_a_step_in_which_much_happened_is_computed_to_the_byte(
    step: int, fates: dict[Fate, int], version: int
) -> None:
    found = replayed(await written(EVENTFUL), step)
    assert found.differences == ()
    assert (found.fates, found.version) == (fates, version)


async def test_a_step_that_was_not_admitted_is_refused() -> None:
    book = await written(Plan(stopped_in=1))
    with pytest.raises(ValueError, match="step 1 is not admitted"):
        replayed(book, 1)


def with_reward(batch: dict[str, Any]) -> None:
    batch["samples"][1]["reward"] = 1.0


def with_mask(batch: dict[str, Any]) -> None:
    batch["samples"][1]["mask"] = "context"


def without_mask(batch: dict[str, Any]) -> None:
    batch["samples"][5]["mask"] = None


def with_advantage(batch: dict[str, Any]) -> None:
    batch["samples"][0]["advantage"] = 0.9


def with_another_order(batch: dict[str, Any]) -> None:
    batch["samples"][0], batch["samples"][1] = batch["samples"][1], batch["samples"][0]


def with_rows_in_another_order(batch: dict[str, Any]) -> None:
    batch["micro_batches"][0]["samples"].reverse()


def with_another_cut(batch: dict[str, Any]) -> None:
    batch["micro_batches"][0]["length"] += 16


def without_a_rollout(batch: dict[str, Any]) -> None:
    del batch["samples"][4]


def with_a_rollout_twice(batch: dict[str, Any]) -> None:
    batch["samples"].append(batch["samples"][0])


def with_a_stranger(batch: dict[str, Any]) -> None:
    batch["samples"][0]["stream"] = "rollout/other/0/0/0"


def with_temperature(batch: dict[str, Any]) -> None:
    batch["temperature"] = 0.5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (with_reward, "group 0, rollout/r/0/0/1: reward in batch is 1.0, computed is 0.0"),
        (with_mask, "group 0, rollout/r/0/0/1: mask in batch is context, computed is none"),
        (without_mask, "group 1, rollout/r/0/1/2: mask in batch is none, computed is infra"),
        (with_advantage, "group 0, rollout/r/0/0/0: advantage in batch is 0.9, computed is 1.0"),
        (with_another_order, "rollout/r/0/0/0: samples[0] in batch is rollout/r/0/0/1, computed is rollout/r/0/0/0"),
        (with_rows_in_another_order, "group 0, rollout/r/0/0/0: micro_batches[0].samples[0] in batch is"),
        (with_another_cut, "step 0: micro_batches[0].length in batch is 32, computed is 16"),
        (without_a_rollout, "group 1, rollout/r/0/1/1: samples in batch is absent, computed is part of the batch"),
        (with_a_rollout_twice, "step 0: samples in batch is 7 rollouts, some twice, computed is 6"),
        (with_a_stranger, "group 0, rollout/r/0/0/0: samples in batch is absent, computed is part of the batch"),
        (with_temperature, "step 0: temperature in batch is 0.5, computed is 1.0"),
    ],
)
async def test_a_change_of_the_stored_batch_is_located(change: Callable[[dict[str, Any]], None], said: str) -> None:
    book = await written()
    manifest = book.first("run/r", StepAdmitted).manifest
    batch = json.loads(book.blobs[manifest])
    change(batch)
    book.blobs[manifest] = canonical_json(batch)
    assert said in first(book, 0)


@pytest.mark.parametrize(
    ("stored", "said"),
    [(b"[]", "form in batch is no batch manifest"), (None, "form in batch is its values in other bytes")],
    ids=["no manifest", "other bytes"],
)
async def test_a_batch_of_another_form_is_told(stored: bytes | None, said: str) -> None:
    book = await written()
    manifest = book.first("run/r", StepAdmitted).manifest
    book.blobs[manifest] = json.dumps(json.loads(book.blobs[manifest])).encode() if stored is None else stored
    assert said in first(book, 0)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            Told(GroupClosed, {"scores": [1.0, 1.0, 0.0]}, where="/r/0/0"),
            "step 0, group 0, rollout/r/0/0/1: scores in GroupClosed is 1.0, computed is 0.0",
        ),
        (
            Told(GroupClosed, {"fate": Fate.ABANDONED, "cause": "no luck"}, where="/r/0/0"),
            "step 0, group 0: fate in GroupClosed is abandoned, computed is trained",
        ),
        (Told(GroupClosed, {"rollout_facts": "f" * 64}, where="/r/0/1"), "step 0, group 1: rollout_facts in"),
        (Told(GroupClosed, {"children": []}, where="/r/0/1"), "group 1, rollout/r/0/1/0: children in GroupClosed is"),
        (Told(GroupOpened, {"version": 7}, where="/r/0/1"), "admission in StepAdmitted is admitted, computed is"),
        (Told(StepDispatched, {"version": 3}, step=0), "version in StepDispatched is 3, computed is 0"),
        (Told(StepAdmitted, {"masked": 0}, step=0), "step 0: masked in StepAdmitted is 0, computed is 1"),
        (Told(StepAdmitted, {"reward_mean": 1.0}, step=0), "step 0: reward_mean in StepAdmitted is 1.0"),
        (Told(StepAdmitted, {"manifest": "f" * 64}, step=0), "step 0: manifest in StepAdmitted is ffff"),
        (
            Told(RolloutEnded, {"content": "f" * 64}, where="/r/0/1/1"),
            "step 0, group 1, rollout/r/0/1/1: content in RolloutEnded is ffff",
        ),
        (Told(RolloutEnded, {"total_tokens": 16}, where="/r/0/1/1"), "total_tokens in RolloutEnded is 16, computed"),
        (Told(RolloutEnded, {"turns": 2}, where="/r/0/1/1"), "turns in RolloutEnded is 2, computed is 1"),
    ],
)
async def test_a_recorded_event_that_does_not_follow_is_located(told: Told, said: str) -> None:
    assert said in first(await written(told=told), 0)


async def test_a_turn_that_is_not_stored_is_named_with_its_rollout() -> None:
    book = await written()
    record = record_of(book, 0)
    turn = record.groups[1].rollouts[0].turns[0]
    del book.blobs[turn.payload]
    said = first(book, 0)
    assert "step 0, group 1, rollout/r/0/1/0: content in RolloutEnded is" in said
    assert f"blob {turn.payload} of turn 0 is not stored" in said


async def test_scores_in_the_place_of_those_recorded_give_another_batch() -> None:
    book = await written()
    record, recipe = record_of(book, 0), recipe_of(book)
    rollout = record.groups[0].rollouts[1]
    assert rollout.graded is not None
    grades = {rollout.stream: rollout.graded.model_copy(update={"score": 1.0})}
    recorded, regraded = batch_of(record, recipe), batch_of(record, recipe, grades)
    assert [sample.reward for sample in recorded.samples] == [1.0, 0.0, 0.0, 1.0, 0.0, None]
    assert [sample.reward for sample in regraded.samples] == [1.0, 1.0, 0.0, 1.0, 0.0, None]
    assert recorded.samples[3:] == regraded.samples[3:], "another group's rollouts are as they were"
    assert {sample.stream for sample in regraded.samples if sample.advantage > 0} == {
        "rollout/r/0/0/0",
        "rollout/r/0/0/1",
        "rollout/r/0/1/0",
    }


async def test_another_recipe_in_its_place_gives_what_would_have_been_trained() -> None:
    book = await written()
    record = record_of(book, 0)
    other = recipe_of(book).model_copy(update={"rl": GrpoConfig(baseline="group_mean", normalise="none")})
    advantages = [sample.advantage for sample in batch_of(record, other).samples]
    assert advantages == pytest.approx([2 / 3, -1 / 3, -1 / 3, 0.5, -0.5, 0.0])
    assert not replay(record, other).is_equal


async def test_a_score_of_which_the_group_knows_nothing_is_located() -> None:
    book = await written()
    stream = "rollout/r/0/0/2"
    book.events[stream] = [
        each.model_copy(update={"score": 1.0}) if isinstance(each, RolloutGraded) else each
        for each in book.events[stream]
    ]
    assert first(book, 0) == ("step 0, group 0, rollout/r/0/0/2: scores in GroupClosed is 0.0, computed is 1.0")
