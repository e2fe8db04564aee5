"""What only blobs tell of trials is held by rules too, and a stream that is lost or broken is missed."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from db.blobs import blob_digest
from stepwell.audit.record import ChainFault, RecordBuilder
from stepwell.events import (
    CheckReached,
    JudgementReached,
    PassScored,
    RunSetCreated,
    SubmissionEvaluated,
    SubmissionTaken,
    TrialPrepared,
    TrialScored,
)
from stepwell.events.base import Event
from stepwell.events.streams import run_set_stream
from stepwell.ptb.trials.audited import RunSetRecord
from stepwell.ptb.trials.manifest import Entry, manifest_blob, manifest_digest
from stepwell.ptb.trials.verification import verify_run_set
from tests.audited_recipe import DIGESTS, HONEST, LEAKER, MODEL, REGIME, scored_pass
from tests.audited_trials import at, audited, failing, of_trial, told
from tests.book import Lie, MemoryBook

OTHER = b"another model"
"""Bytes of a file that nobody submitted."""


def _better(stream: str, event: Event) -> Event:
    """Raises the raw score of a record, and of its passes with it."""
    if not isinstance(event, TrialScored) or stream != at(LEAKER):
        return event
    passes = [{**each, "points": 90.0} for each in event.record["passes"]]
    return event.model_copy(update={"record": {**event.record, "raw": 90.0, "passes": passes}})


def _unflagged(stream: str, event: Event) -> Event:
    """Leaves the flags out of a record."""
    if not isinstance(event, TrialScored) or stream != at(LEAKER):
        return event
    return event.model_copy(update={"record": {**event.record, "flags": []}})


@pytest.mark.parametrize(
    ("lie", "words"),
    [(_better, "raw is 90.0, the mean of its passes 70.0"), (_unflagged, "flags is [], its events make it [{")],
)
async def test_a_record_that_does_not_follow_from_its_events_is_the_only_thing_that_fails(lie: Lie, words: str) -> None:
    found = failing(audited(await told(lie)))
    assert set(found) == {"scores"}
    assert words in found["scores"]


async def test_an_evaluation_of_another_model_than_the_submitted_one_is_found() -> None:
    files = {"config.json": blob_digest(b"{}"), "model.safetensors": blob_digest(OTHER)}
    found = failing(audited(await told(files=files)))
    assert set(found) == {"submissions"}
    assert f"evaluated with model.safetensors of {blob_digest(OTHER)}, submitted was" in found["submissions"]


async def test_a_model_that_did_not_lie_in_the_work_folder_is_found() -> None:
    model = (Entry(path="model.safetensors", kind="file", size=1, content=blob_digest(OTHER)),)
    lie = of_trial(
        LEAKER, SubmissionTaken, model=blob_digest(manifest_blob(model)), weights_digest=manifest_digest(model)
    )
    book = await told(lie)
    await book.put(manifest_blob(model))
    found = failing(audited(book))
    assert "the model's model.safetensors did not lie in the work folder" in found["submissions"]


async def test_points_that_an_answer_was_not_worth_are_found_though_event_and_answers_agree() -> None:
    first = scored_pass(REGIME.seeds[0], (1.0, 0.0)).model_copy(update={"points": 100.0})
    better = first.model_dump_json().encode()

    def lie(stream: str, event: Event) -> Event:
        if isinstance(event, PassScored) and event.seed == first.seed and stream == at(LEAKER):
            return event.model_copy(update={"points": 100.0, "answers": blob_digest(better)})
        return event

    book = await told(lie)
    await book.put(better)
    found = failing(audited(book))
    assert set(found) == {"points", "evaluations"}
    assert f"its answers make them ({REGIME.seeds[0]}, 50.0, 0)" in found["points"]


async def test_a_prompt_with_more_in_it_than_was_declared_is_found() -> None:
    more = b"Post-train it.\n\nThe answers are in /answers."
    book = await told(of_trial(LEAKER, TrialPrepared, prompt=blob_digest(more)))
    await book.put(more)
    found = failing(audited(book))
    assert set(found) == {"prompts"}
    assert "it was told something that nobody declared" in found["prompts"]


async def test_more_starts_than_the_recipe_allows_are_found() -> None:
    recipe_of_none = {"failures": {"host_restarts": 0, "attempts": 5, "lease_s": 30.0}}

    def lie(_: str, event: Event) -> Event:
        if isinstance(event, RunSetCreated):
            return event.model_copy(update={"recipe": {**event.recipe, **recipe_of_none}})
        return event

    assert f"{at(HONEST)} #5: starts again 1 times, 0 are allowed" in failing(audited(await told(lie)))["starts"]


def _without_a_trial(book: MemoryBook) -> RecordBuilder:
    builder = RecordBuilder("s")
    for name, events in book.events.items():
        if name != at(LEAKER):
            builder.add(name, events, book.hashes[name])
    return builder


def _with_a_foreign_event(book: MemoryBook) -> RecordBuilder:
    builder = RecordBuilder("s")
    for name, events in book.events.items():
        extra = [book.events[run_set_stream("s")][1]] if name == at(LEAKER) else []
        builder.add(name, [*events, *extra], [*book.hashes[name], *("f" * 64 for _ in extra)])
    return builder


def _with_a_break(book: MemoryBook) -> RecordBuilder:
    builder = RecordBuilder("s")
    for name, events in book.events.items():
        kept = 4 if name == at(LEAKER) else len(events)
        fault = ChainFault(name, 4, "the bytes hash to something else") if name == at(LEAKER) else None
        builder.add(name, events[:kept], book.hashes[name][:kept], fault)
    return builder


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_without_a_trial, {"overrides", "ending"}),
        (_with_a_foreign_event, {"chains", "ending"}),
        (_with_a_break, {"chains", "overrides", "ending"}),
    ],
)
async def test_a_stream_that_is_lost_longer_or_broken_is_found(
    change: Callable[[MemoryBook], RecordBuilder], expected: set[str]
) -> None:
    book = await told()
    builder = change(book)
    named = builder.named_blobs()
    stored = builder.build(
        named_blobs=named, blob_faults={}, documents={digest: book.blobs[digest] for digest in named}
    )
    assert set(failing(verify_run_set(RunSetRecord(stored, regime_here=REGIME)))) == expected


@pytest.mark.parametrize("kind", [SubmissionTaken, CheckReached, JudgementReached, PassScored, SubmissionEvaluated])
async def test_a_blob_that_is_missing_or_says_nothing_is_named_with_its_event(kind: type[Event]) -> None:
    field = {SubmissionTaken: "model", CheckReached: "report", JudgementReached: "votes", PassScored: "answers"}
    garbled = b"no such thing"
    book = await told(of_trial(LEAKER, kind, **{field.get(kind, "report"): blob_digest(garbled)}))
    missing = failing(audited(book))
    assert at(LEAKER) in missing["blobs"]
    assert "documents" not in missing
    await book.put(garbled)
    assert "can be read" in failing(audited(book))["documents"]


async def test_files_of_this_machine_are_compared_if_they_were_looked_at() -> None:
    stored = (await told()).record("s")
    seen = RunSetRecord(stored, regime_here=REGIME, digests_here=DIGESTS)
    assert failing(verify_run_set(seen)) == {}
    changed = {**DIGESTS, f"base/{MODEL}": "c"}
    found = failing(verify_run_set(replace(seen, digests_here=changed)))
    assert found == {"files": f"run-set/s #0: base/{MODEL} was b, here it is c"}


async def test_without_its_regime_passes_are_held_against_the_basis() -> None:
    stored = (await told()).record("s")
    verification = verify_run_set(RunSetRecord(stored))
    assert (failing(verification), verification.regime_known) == ({}, False)
    other = REGIME.model_copy(update={"seeds": (1,)})
    assert not verify_run_set(RunSetRecord(stored, regime_here=other)).regime_known
