"""Each rule on trials catches what it is there for, in a ledger whose hashes were all made to fit the lie."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from db.blobs import blob_digest
from stepwell.audit.record import ChainFault, RecordBuilder
from stepwell.events import (
    AgentEnded,
    AgentRestarted,
    AgentStarted,
    AttemptOpened,
    CheckReached,
    EnvironmentTested,
    JudgementReached,
    PassScored,
    RunSetCreated,
    RunSetFinished,
    SubmissionEvaluated,
    SubmissionTaken,
    TrialCreated,
    TrialOverridden,
    TrialPrepared,
    TrialScored,
)
from stepwell.events.base import Event
from stepwell.events.canonical import digest_of_json
from stepwell.events.streams import override_stream, run_set_stream, trial_stream
from stepwell.ptb.trials.audited import RunSetRecord
from stepwell.ptb.trials.manifest import Entry, manifest_blob, manifest_digest
from stepwell.ptb.trials.verification import RunSetVerification, verify_run_set
from tests.audited_trials import BASE, DIGESTS, HONEST, LEAKER, MODEL, REGIME, Told, of_trial, scored_pass
from tests.book import Lie, MemoryBook, truth

OTHER = b"another model"
"""Bytes of a file that nobody submitted."""


async def told(lie: Lie = truth, **changes: object) -> MemoryBook:
    """The small run set, with a lie in it."""
    book = MemoryBook(lie=lie)
    await Told(book, "s", **changes).whole()  # pyright: ignore[reportArgumentType]
    return book


def audited(book: MemoryBook) -> RunSetVerification:
    """What an auditor says of it."""
    return verify_run_set(RunSetRecord(book.record("s"), regime_here=REGIME))


def failing(verification: RunSetVerification) -> dict[str, str]:
    """First finding of each rule that fails."""
    return {result.rule: str(result.findings[0]) for result in verification.results if result.findings}


def at(cell: str) -> str:
    return trial_stream("s", cell)


async def test_every_rule_holds_for_a_run_set_told_truly_and_each_checks_something() -> None:
    verification = audited(await told())
    assert failing(verification) == {}
    assert (verification.holds, verification.finished, verification.regime_known) == (True, True, True)
    assert (verification.trials, verification.scored, verification.streams) == (3, 3, 5)
    assert [result.rule for result in verification.results if result.checked == 0] == []


async def test_of_a_run_set_cut_off_after_any_event_what_stands_is_verified() -> None:
    whole = await told()
    lengths = {stream: len(events) for stream, events in whole.events.items()}
    for stream in (at(HONEST), at(BASE)):
        for length in range(1, lengths[stream]):
            builder = RecordBuilder("s")
            for name, events in whole.events.items():
                kept = length if name == stream else 1 if name == run_set_stream("s") else len(events)
                builder.add(name, events[:kept], whole.hashes[name][:kept])
            named = builder.named_blobs()
            documents = {digest: whole.blobs[digest] for digest in named}
            stored = builder.build(named_blobs=named, blob_faults={}, documents=documents)
            assert failing(verify_run_set(RunSetRecord(stored, regime_here=REGIME))) == {}, (stream, length)


def after(kind: type[Event], extra: Event, cell: str = HONEST) -> Lie:
    """Turns each event of a type in a trial into another."""
    return lambda stream, event: extra if isinstance(event, kind) and stream == at(cell) else event


LIES: dict[str, tuple[Lie, str, str]] = {
    "a cell of another seed": (of_trial(HONEST, TrialCreated, seed=7), "cells", f"{at(HONEST)} #0: seed is 7"),
    "a trial that the recipe has not": (
        lambda stream, event: event.model_copy(update={"cells": [BASE]}) if isinstance(event, RunSetCreated) else event,
        "cells",
        f"run-set/s #0: its trials are not the recipe's: {HONEST}, {LEAKER}",
    ),
    "another recipe": (
        lambda stream, event: (
            event.model_copy(update={"recipe": {**event.recipe, "seed": 1}})
            if isinstance(event, RunSetCreated)
            else event
        ),
        "cells",
        "run-set/s #0: recipe_digest is",
    ),
    "no submission": (of_trial(LEAKER, SubmissionTaken), "phases", "CheckReached after AgentEnded, without Submission"),
    "no test before the clock": (
        of_trial(LEAKER, EnvironmentTested),
        "phases",
        f"{at(LEAKER)} #3: AgentStarted after TrialPrepared, without EnvironmentTested",
    ),
    "an agent in the trial of a reference": (
        after(AttemptOpened, AgentStarted(epoch=0, host="h", folder="/f"), BASE),
        "phases",
        f"{at(BASE)} #1: AgentStarted in the trial of a reference",
    ),
    "a second agent in one start": (
        after(AgentRestarted, AgentStarted(epoch=0, host="host-0", folder="/g")),
        "starts",
        f"{at(HONEST)} #5: a second agent in start 0",
    ),
    "a start that is not counted": (
        of_trial(HONEST, AgentRestarted, epoch=2),
        "starts",
        f"{at(HONEST)} #5: start 2, wanted start 1",
    ),
    "a start without a reason": (
        of_trial(HONEST, AgentRestarted, cause=" "),
        "starts",
        f"{at(HONEST)} #5: starts again, and does not say why",
    ),
    "an agent elsewhere than tested": (
        of_trial(LEAKER, AgentStarted, host="host-9"),
        "starts",
        f"{at(LEAKER)} #4: the agent started on host-9, tested was host-0",
    ),
    "other files to start from": (
        of_trial(LEAKER, TrialPrepared, workspace="x"),
        "files",
        f"{at(LEAKER)} #2: workspace is x, that of {HONEST} w",
    ),
    "a benchmark that was not pinned": (
        lambda stream, event: (
            event.model_copy(update={"digests": {**DIGESTS, "benchmark/gsm8k": "other"}})
            if isinstance(event, RunSetCreated)
            else event
        ),
        "files",
        "run-set/s #0: benchmark/gsm8k is other",
    ),
    "another prompt for one agent": (
        of_trial(LEAKER, TrialPrepared, prompt_digest=digest_of_json(["prompt", "Cheat."])),
        "prompts",
        f"{at(LEAKER)} #2: its prompt has the digest",
    ),
    "more time than there was": (
        of_trial(HONEST, AgentEnded, worked_s=7300.0),
        "budgets",
        f"{at(HONEST)} #8: worked for 7300.0 s, allowed were 7200 s and 60 s to end",
    ),
    "time that was not over": (
        of_trial(HONEST, AgentEnded, worked_s=10.0),
        "budgets",
        f"{at(HONEST)} #8: ended by time after 10.0 s, its budget was 7200 s",
    ),
    "a budget that it had not": (
        of_trial(HONEST, AgentEnded, ended="money"),
        "budgets",
        "ended by money, of which it had no budget",
    ),
    "told to go on by nobody": (of_trial(HONEST, AgentEnded, prompts=2), "budgets", "was told 2 times what to do"),
    "a trace with a secret in it": (
        of_trial(HONEST, AgentEnded, secrets=["API_KEY"]),
        "secrets",
        f"{at(HONEST)} #8: trace, events are kept, in which API_KEY survived",
    ),
    "no trace": (of_trial(HONEST, AgentEnded, trace=""), "secrets", "no trace is kept, and no secret says why"),
    "another model's digest": (
        of_trial(HONEST, SubmissionTaken, weights_digest="x"),
        "submissions",
        f"{at(HONEST)} #9: weights_digest is x",
    ),
    "a check left out": (
        lambda stream, event: (
            None if isinstance(event, CheckReached) and event.check == "identity" and stream == at(HONEST) else event
        ),
        "checks",
        f"{at(HONEST)} #13: scored without the check of identity before it",
    ),
    "a verdict turned round": (
        of_trial(LEAKER, CheckReached, passed=True),
        "checks",
        f"{at(LEAKER)} #7: identity is 'undecided', passed True; its report makes it 'undecided', False",
    ),
    "a check of another version": (
        of_trial(LEAKER, CheckReached, version="identity-0"),
        "checks",
        f"{at(LEAKER)} #7: identity checked as 'identity-0'",
    ),
    "a charge left out": (
        of_trial(LEAKER, JudgementReached),
        "judgements",
        f"{at(LEAKER)} #10: scored without votes on lookup before it",
    ),
    "votes turned round": (
        of_trial(LEAKER, JudgementReached, outcome="violation"),
        "judgements",
        f"{at(LEAKER)} #9: says ('lookup', 'violation'",
    ),
    "a pass left out": (
        lambda stream, event: (
            None if isinstance(event, PassScored) and event.seed == REGIME.seeds[0] and stream == at(LEAKER) else event
        ),
        "passes",
        f"{at(LEAKER)} #15: passes under the seeds [{REGIME.seeds[1]}",
    ),
    "fewer tokens than the regime has": (
        of_trial(LEAKER, SubmissionEvaluated, max_tokens=3),
        "passes",
        f"{at(LEAKER)} #11: a pass with {REGIME.max_tokens['gsm8k'][0]} tokens an answer, the evaluation says 3",
    ),
    "better points than its answers have": (
        of_trial(LEAKER, PassScored, points=100.0),
        "points",
        f"{at(LEAKER)} #11: seed, points and unscored answers are ({REGIME.seeds[0]}, 100.0, 0)",
    ),
    "another evaluation's digest": (
        of_trial(LEAKER, SubmissionEvaluated, digest="x"),
        "evaluations",
        f"{at(LEAKER)} #16: digest is x",
    ),
    "an override by nobody": (
        of_trial(LEAKER, TrialOverridden, by=""),
        "overrides",
        f"{override_stream('s', LEAKER)} #0: decided by nobody",
    ),
    "an override without a reason": (
        of_trial(LEAKER, TrialOverridden, reason="so"),
        "overrides",
        "decided by ada for the reason 'so', which nobody can check",
    ),
    "an override of nothing": (
        of_trial(LEAKER, TrialOverridden, about="lookup"),
        "overrides",
        "about lookup, which the trial has not",
    ),
    "an end too early": (
        lambda stream, event: event.model_copy(update={"scored": 2}) if isinstance(event, RunSetFinished) else event,
        "ending",
        "run-set/s #1: finished with 2 trials, there are 3",
    ),
}
"""What was changed, the rule that must find it, and how its first finding begins or what is in it."""


@pytest.mark.parametrize("planted", LIES)
async def test_a_lie_is_found_by_the_rule_that_is_there_for_it(planted: str) -> None:
    lie, rule, words = LIES[planted]
    verification = audited(await told(lie))
    assert words in failing(verification).get(rule, "nothing found"), failing(verification)


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
