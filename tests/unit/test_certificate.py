"""The completeness certificate: granted to a run that is complete, refused for each thing that may be wrong."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from db.blobs import blob_digest
from stepwell.agent.protocol import StopReason
from stepwell.events import (
    GroupOpened,
    OperatorActed,
    RolloutEnded,
    RolloutGraded,
    RunFinished,
    StepAdmitted,
    StepDispatched,
    StepTrained,
    TurnRecorded,
    ValidationRecorded,
    VerdictReached,
)
from stepwell.events.base import Event
from stepwell.events.canonical import canonical_json
from stepwell.events.run_finished import RunEnd
from stepwell.mlperf.certificate.certify import certify
from stepwell.mlperf.certificate.document import SCHEMA, document, lines
from tests.audited_run import write_run
from tests.book import NOON, Lie, MemoryBook, Told, acts, both, dropped, truth
from tests.certified_run import EARLY, INLINE, LATE, NOON_MS, OFFLINE, VALIDATION, certified, noon, refused, written
from tests.run_plan import EVENTFUL, Plan


@pytest.mark.parametrize("plan", [INLINE, OFFLINE], ids=["inline", "offline"])
async def test_a_complete_run_is_certified_up_to_its_head(plan: Plan) -> None:
    book = await written(plan)
    certificate = certify(book.record("r"))
    assert refused(certificate) == {}
    said = document(certificate)
    assert (said["schema"], said["granted"], said["first"]) == (SCHEMA, True, None)
    assert said["head"] == {"stream": "run/r", "seq": len(book.events["run/r"]) - 1, "hash": book.hashes["run/r"][-1]}
    assert all(rule["checked"] for rule in said["rules"])
    assert json.loads(json.dumps(said)) == said
    assert lines(certificate)[-1].startswith("granted: complete; version")


async def test_inline_a_run_stops_when_the_result_is_known_and_offline_when_the_weights_are_made() -> None:
    inline, offline = await certified(INLINE), await certified(OFFLINE)
    assert inline.stop is not None
    assert offline.stop is not None
    book = await written(INLINE)
    assert (inline.stop.version, inline.stop.stream) == (2, "run/r")
    assert isinstance(book.events["run/r"][inline.stop.seq], ValidationRecorded)
    assert (offline.stop.version, offline.stop.stream) == (1, "weights/r"), "the lowest, though it was evaluated last"
    assert offline.stop.time_ms == NOON_MS


async def test_a_run_that_passes_nothing_is_certified_without_a_stop() -> None:
    plan = Plan(all_end=True, recipe={"validation": {**VALIDATION, "target": None}})
    certificate = await certified(plan, Told(RunFinished, {"end": RunEnd.MAX_STEPS}))
    assert (refused(certificate), certificate.stop) == ({}, None)


@dataclass(frozen=True)
class Plant:
    """Something that is wrong with a run that is right but for it."""

    lie: Lie
    found: Mapping[str, str]
    """By each rule that must find it, what it says."""
    plan: Plan = INLINE
    clock: Callable[[str, Event], str] = noon


def unfiltered(recipe: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**recipe, "rl": {"overlong_filtering": False}}


def counts(**changes: int) -> Callable[[str, Event], Event]:
    """The trainer counted more or less in step 1."""

    def lie(_: str, event: Event) -> Event:
        if not isinstance(event, StepTrained) or event.step != 1:
            return event
        changed = {name: event.metrics.get(name, 0) + by for name, by in changes.items()}
        return event.model_copy(update={"metrics": event.metrics | changed})

    return lie


def swapped(stream: str, event: Event) -> Event:
    """Steps 0 and 1 take each other's prompts, from their dispatch down."""
    task = [blob_digest(f"train task {number}".encode()) for number in range(4)]
    if isinstance(event, StepDispatched):
        return event.model_copy(update={"tasks": task[2:] if event.step == 0 else task[:2]})
    if isinstance(event, GroupOpened) and stream.split("/")[2].isdigit():
        return event.model_copy(update={"task": task[(task.index(event.task) + 2) % 4]})
    return event


def stale(stream: str, event: Event) -> Event | None:
    """An operator's leave to generate step 1 by version 0 is hidden: the recipe allows no staleness."""
    hidden = acts(lambda act: act.action == "set")(stream, event)
    return hidden.model_copy(update={"settings": {}}) if isinstance(hidden, StepDispatched) else hidden


def made_at(time: str, version: int) -> Callable[[str, Event], str]:
    return lambda _, event: time if isinstance(event, StepTrained) and event.version == version else NOON


PLANTS: dict[str, Plant] = {
    "a rollout counted that ran out of time": Plant(
        Told(RolloutEnded, {"reason": StopReason.WALL_CLOCK}, where="/1/0/2"),
        {"ends": "rollout/r/1/0/2 #3: counted in the batch of step 1, though the agent ran out of time"},
        Plan(all_end=True, recipe=unfiltered(INLINE.recipe)),
    ),
    "a prompt skipped": Plant(
        truth,
        {"samples": "prompt/r/1/0 #1: its prompt was skipped, not trained: it is not wanted"},
        Plan(all_end=True, recipe=INLINE.recipe, skipped=frozenset({(1, 0)})),
    ),
    "a stale batch": Plant(
        stale,
        {
            "versions": "run/r #5: step 1 generated by version 0, max_staleness 0 makes it 1",
            "batches": "run/r #6: admitted, though step 1: prompt 0 was generated by version 0, wanted 1",
        },
        Plan(all_end=True, recipe=INLINE.recipe, settings={1: {"run.max_staleness": 1}}),
    ),
    "a second version in an evaluation": Plant(
        Told(TurnRecorded, {"version": 1}, where="/v2-main/1/0"),
        {"versions": "rollout/r/v2-main/1/0 #1: turn 0 was generated by version 1, its group by 2"},
    ),
    "a sequence without an advantage dropped": Plant(
        counts(tokens=-15, generated_tokens=-5, loss_tokens=-5),
        {"trained": "the trainer counted 75 tokens of step 1, its 6 eligible sequences have 90"},
    ),
    "a re-ordered step": Plant(swapped, {"curriculum": "run/r #2: prompt 0 of step 0 is task"}),
    "a missing evaluation": Plant(
        truth,
        {"evaluations": "no evaluation of version 1 on main is recorded"},
        Plan(all_end=True, recipe={"validation": {**VALIDATION, "every": 1, "first": 1}}),
    ),
    "an evaluation too many": Plant(
        truth,
        {"evaluations": "version 0 was evaluated on main, which the schedule does not ask for"},
        Plan(all_end=True, recipe={"validation": {**VALIDATION, "initial": False}}),
    ),
    "a wrong stop time": Plant(
        truth,
        {"stop": "weights/r #1: its time is 2026-01-31T11:59:59.999000Z, the event before it has"},
        OFFLINE,
        made_at(EARLY, 1),
    ),
    "a stop that comes after its own result": Plant(
        truth,
        {"stop": "weights/r #2: its time is 2026-01-31T12:00:00.000000Z, the event before it has 2026-01-31T12:00:01"},
        OFFLINE,
        made_at(LATE, 1),
    ),
    "a run that trained on to a later stop": Plant(
        Told(RunFinished, {"end": RunEnd.MAX_STEPS}),
        {"stop": "the run ended as one that did all its steps, at version 2; version 1 had passed"},
        OFFLINE,
    ),
}


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
async def test_what_is_planted_in_a_run_whose_hashes_all_fit_is_found_by_its_rule_alone(plant: Plant) -> None:
    certificate = await certified(plant.plan, plant.lie, plant.clock)
    found = refused(certificate)
    assert found.keys() == plant.found.keys(), found
    assert all(said in found[rule] for rule, said in plant.found.items()), found
    assert not certificate.granted
    assert document(certificate)["first"]["what"] in lines(certificate)[-1]


async def test_a_sample_that_is_trained_twice_is_found() -> None:
    book = await written(INLINE)
    admitted = book.first("run/r", StepAdmitted)
    batch = json.loads(book.blobs[admitted.manifest])
    batch["micro_batches"].append({**batch["micro_batches"][0], "samples": [0]})
    book.blobs[admitted.manifest] = canonical_json(batch)
    found = refused(certify(book.record("r")))
    assert found.keys() == {"trained", "batches"}
    assert "has rollout/r/0/0/0 (advantage 1) in 2 micro-batches, wanted 1" in found["trained"]


async def test_a_sequence_that_no_micro_batch_has_is_found() -> None:
    book = await written(INLINE)
    admitted = book.first("run/r", StepAdmitted)
    batch = json.loads(book.blobs[admitted.manifest])
    batch["micro_batches"] = batch["micro_batches"][:-1]
    book.blobs[admitted.manifest] = canonical_json(batch)
    assert "in 0 micro-batches, wanted 1" in refused(certify(book.record("r")))["trained"]


async def test_a_row_that_the_step_masked_leaves_the_denominator_and_nothing_else() -> None:
    masked = counts(loss_tokens=-5, masked_mismatch=1)
    assert refused(await certified(INLINE, masked)) == {}
    unsaid = await certified(INLINE, counts(loss_tokens=-5))
    assert "counted 25 loss_tokens of step 1" in refused(unsaid)["trained"]


@pytest.mark.parametrize(
    ("lie", "rule", "said"),
    [
        (
            both(
                Told(RolloutGraded, {"timed_out": True}, where="/v2-main/0/0"),
                Told(VerdictReached, {"timed_out": True}, where="r-v2-main-0-0"),
            ),
            "ends",
            "counted as passed, though its tests ran out of time",
        ),
        (dropped(RunFinished), "whole", "the run has not ended"),
        (Told(RunFinished, {"end": RunEnd.FAILED}), "whole", "the run ended as failed"),
    ],
)
async def test_other_ways_of_being_incomplete_are_found(lie: Lie, rule: str, said: str) -> None:
    found = refused(await certified(INLINE, lie))
    assert list(found) == [rule]
    assert said in found[rule]


async def test_an_eventful_run_that_verifies_is_not_one_of_the_benchmark() -> None:
    validation = {**VALIDATION, "every": 3, "first": 3, "target": None}
    book = MemoryBook()
    await write_run(book, "r", replace(EVENTFUL, recipe={**EVENTFUL.recipe, "validation": validation}))
    certificate = certify(book.record("r"))
    assert refused(certificate).keys() == {"whole", "samples"}
    said = " ".join(finding.what for result in certificate.results for finding in result.findings)
    for part in (
        "an operator asked to set",
        "was dispatched with other settings",
        "rollout/r/1/1/0 is marked as not to be trusted",
        "prompt 1 of step 0 was replaced by one of the reserve",
        "its prompt was quarantined, not trained",
        "its prompt was skipped, not trained",
        "lost to its group, which was trained without it: it failed (infra): no luck",
        "the batch of step 1 has 3 samples, the recipe makes it 6",
    ):
        assert part in said


async def test_a_recipe_without_a_schedule_proves_nothing() -> None:
    found = refused(await certified(Plan(all_end=True)))
    assert found == {"whole": "run/r #0: its recipe says not enough: validation: Field required"}


async def test_an_operator_that_pauses_changes_nothing_and_one_that_sets_does() -> None:
    pause = OperatorActed(action="pause", arguments={}, who="ann@host", reason="the night", update="u1")
    book = await written(INLINE)
    await book.append("operator/r", pause)
    assert refused(certify(book.record("r"))) == {}
    plan = Plan(all_end=True, recipe=INLINE.recipe, settings={1: {"optimiser.learning_rate": 0.1}})
    found = refused(await certified(plan))
    assert list(found) == ["whole"]
    assert "an operator asked to set" in found["whole"]
