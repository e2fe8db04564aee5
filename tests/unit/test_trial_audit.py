"""Each rule on trials catches what it is there for, in a ledger whose hashes were all made to fit the lie."""

import pytest

from stepwell.audit.record import RecordBuilder
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
)
from stepwell.events.base import Event
from stepwell.events.canonical import digest_of_json
from stepwell.events.streams import override_stream, run_set_stream
from stepwell.ptb.trials.audited import RunSetRecord
from stepwell.ptb.trials.verification import verify_run_set
from tests.audited_recipe import BASE, DIGESTS, HONEST, LEAKER, REGIME
from tests.audited_trials import at, audited, failing, of_trial, told
from tests.book import Lie


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
