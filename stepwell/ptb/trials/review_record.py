"""What is known of a trial, for its review: all of it out of the ledger and its blobs."""

import json
from collections.abc import Mapping, Sequence

from stepwell.events.check_reached import CheckReached
from stepwell.events.trial_overridden import TrialOverridden
from stepwell.ptb.benchmarks import benchmark
from stepwell.ptb.chat import template_of
from stepwell.ptb.evaluation import PassResult
from stepwell.ptb.judges import Judged
from stepwell.ptb.leaderboard.records import Basis
from stepwell.ptb.prompts import Prompt
from stepwell.ptb.review.trial_record import (
    ContaminationRecord,
    IdentityRecord,
    Interruption,
    ItemOutcome,
    Limits,
    Network,
    PassRecord,
    ScoredWith,
    Secrets,
    SelfTest,
    Statement,
    TrialRecord,
    VotesRecord,
)
from stepwell.ptb.scaffolds import scaffold
from stepwell.ptb.trials.agent_order import command_of
from stepwell.ptb.trials.briefing import briefing_of, enforced_of
from stepwell.ptb.trials.fold import TrialFold
from stepwell.ptb.trials.loading import regime_of
from stepwell.ptb.trials.manifest import read_manifest
from stepwell.ptb.trials.recipe import RunSetRecipe

LOOKED_AT = ("base model", "benchmark's tools", "work folder and home can be written", "timer", "Python's libraries")
"""By the test before the clock."""
RETRIES = "infrastructure alone; the agent's host lost: from the start; nothing that an agent does"


def blobs_for_review(fold: TrialFold) -> list[str]:
    """Blobs that `trial_record` reads."""
    named = [each.report for each in fold.checks] + [each.votes for each in fold.judgements]
    named += [each.answers for each in fold.passes]
    named += [fold.ended.trace] if fold.ended is not None else []
    named += [fold.submission.model] if fold.submission is not None else []
    return [digest for digest in named if digest]


def trial_record(
    run_set: str,
    recipe: RunSetRecipe,
    basis: Basis,
    fold: TrialFold,
    blobs: Mapping[str, bytes],
    overrides: Sequence[TrialOverridden] = (),
) -> TrialRecord:
    """What is known of a trial of an agent that has its record.

    Args:
        run_set: Its run set.
        recipe: Of the run set.
        basis: Of its scores.
        fold: Where it stands.
        blobs: By digest, those of `blobs_for_review`.
        overrides: What persons decided.
    """
    created, ended, tested = fold.created, fold.ended, fold.tested
    assert ended is not None  # it has its record
    assert tested is not None
    assert fold.prepared is not None
    assert fold.submission is not None
    agent = recipe.agent(created.agent)
    declared, told, held = scaffold(agent.scaffold), briefing_of(recipe, created), enforced_of(recipe, agent)
    is_judged = benchmark(created.benchmark).needs == "judge"
    passes = [PassResult.model_validate_json(blobs[each.answers]) for each in fold.passes]
    model = read_manifest(blobs[fold.submission.model]) if fold.submission.model else ()
    return TrialRecord(
        trial=f"{run_set}/{created.cell}",
        prompt=fold.prepared.prompt,
        prompt_shared=fold.prepared.prompt_digest,
        prompt_additions=(declared.addition.strip(),) if declared.addition.strip() else (),
        statements=_statements(told),
        rules=regime_of(recipe).rules,
        scaffold=agent.scaffold,
        scaffold_version=tested.version,
        command=command_of(agent, "{prompt}").argv,
        model_asked=agent.model,
        effort=agent.effort or "default",
        limits=Limits(hours=held.hours, tokens=held.tokens or "none", turns="none", money=held.money or "none"),
        network=Network(mode=held.internet, hosts=held.hosts, log=ended.traffic or None),
        keys=agent.secrets,
        scored_with=ScoredWith(
            data=basis.data[created.benchmark],
            scorer=basis.scorers[created.benchmark],
            template=template_of(created.base_model).digest,
            template_by="base model",
            environment=basis.environment,
            judge=basis.judge if is_judged else None,
        ),
        trace_raw=ended.trace or None,
        trace_parsed=ended.events or None,
        trace_stamped=True,
        secrets=Secrets(redacted=blobs.get(ended.trace, b"").count(b"[redacted "), survivors=len(ended.secrets)),
        workspace=fold.submission.manifest,
        model_configuration=next((entry.content for entry in model if entry.path == "config.json"), None),
        weights=fold.submission.weights_digest or None,
        items=_items(passes),
        passes=tuple(
            PassRecord(
                seed=each.seed,
                expected=len(each.items),
                scored=len(each.items) - each.unscored,
                judge_errors=each.unscored if is_judged else None,
            )
            for each in passes
        ),
        worked_s=ended.worked_s,
        interruptions=_interruptions(fold),
        attempts=fold.epoch + 1,
        retry_policy=RETRIES,
        self_test=SelfTest(passed=True, before_the_clock=True, looked_at=LOOKED_AT),
        model_loads=fold.evaluated is not None and not fold.evaluated.failure,
        contamination=_contamination(fold.checks, blobs),
        identity=_identity(fold.checks),
        votes=_votes(fold, blobs, overrides),
    )


def _statements(told: Prompt) -> tuple[Statement, ...]:
    """What the prompt says, and whether it is so. A rule that nobody checks is neither."""
    found: list[Statement] = []
    wrong = {each.tag: each.kind for each in told.contradictions}
    for each in told.statements:
        claims: str | float | None = None
        if each.claim.tag == "internet":
            claims = each.claim.value
        elif each.claim.tag == "time":
            claims = float(each.claim.value)
        kind = wrong.get(each.claim.tag)
        holds = None if claims is not None or kind == "unchecked" else kind is None
        found.append(Statement(about=each.claim.tag, says=each.text, claims=claims, holds=holds))
    return tuple(found)


def _items(passes: Sequence[PassResult]) -> tuple[ItemOutcome, ...]:
    return tuple(
        ItemOutcome(item=item.item, seed=each.seed, worth=item.value, why=item.why, answer=item.answer.text)
        for each in passes
        for item in each.items
    )


def _interruptions(fold: TrialFold) -> tuple[Interruption, ...]:
    found = [Interruption(kind="infrastructure", says=cause, made_good=True) for cause in fold.lost]
    limit = "" if fold.ended is None else fold.ended.limit
    if "rate" in limit or "overload" in limit:
        found.append(Interruption(kind="rate_limit", says=limit, made_good=False))
    if "credit" in limit or "login" in limit:
        found.append(Interruption(kind="credit", says=limit, made_good=False))
    if fold.ended is not None and fold.ended.ended == "crash":
        found.append(Interruption(kind="crash", says=f"exit status {fold.ended.exit_status}", made_good=False))
    return tuple(found)


def _contamination(checks: Sequence[CheckReached], blobs: Mapping[str, bytes]) -> ContaminationRecord | None:
    reached = next((each for each in checks if each.check == "contamination"), None)
    if reached is None:
        return None
    report = json.loads(blobs[reached.report])
    return ContaminationRecord(
        verdict=reached.verdict,  # pyright: ignore[reportArgumentType]  # checked by the model
        scanned_rows=report["scanned_rows"],
        unscanned=sum(each["count"] for each in report["unscanned"]),
        leaks=len(report["leaks"]),
        report=reached.report,
    )


def _identity(checks: Sequence[CheckReached]) -> IdentityRecord | None:
    reached = next((each for each in checks if each.check == "identity"), None)
    if reached is None:
        return None
    weights_compared = reached.verdict != "unreadable"
    return IdentityRecord(
        verdict=reached.verdict, passed=reached.passed, weights_compared=weights_compared, report=reached.report
    )


def _votes(
    fold: TrialFold, blobs: Mapping[str, bytes], overrides: Sequence[TrialOverridden]
) -> tuple[VotesRecord, ...]:
    found: list[VotesRecord] = []
    for each in fold.judgements:
        judged = Judged.model_validate_json(blobs[each.votes])
        decided = [one for one in overrides if (one.about, one.of) == (each.charge, each.judged)]
        ruling = each.outcome if not decided else "violation" if decided[-1].violation else "none"
        found.append(
            VotesRecord(
                charge=each.charge,
                judges=tuple(vote.judge for vote in judged.votes),
                votes=tuple(None if vote.verdict is None else vote.verdict.violation for vote in judged.votes),
                ruling=ruling,
                override=decided[-1].reason if decided else None,
            )
        )
    return tuple(found)
