"""Where a trial stands by its events, and what comes of it: as found, and as persons leave it."""

import pytest

from stepwell.events import (
    AgentEnded,
    AgentRestarted,
    AgentStarted,
    CheckReached,
    EnvironmentTested,
    JudgementReached,
    PassScored,
    SubmissionEvaluated,
    SubmissionTaken,
    TrialAbandoned,
    TrialCreated,
    TrialOverridden,
    TrialPrepared,
    TrialScored,
)
from stepwell.events.base import Event
from stepwell.ptb.leaderboard.records import Cell
from stepwell.ptb.trials import RunSetRecipe
from stepwell.ptb.trials.fold import NoTrial, fold_trial
from stepwell.ptb.trials.results import NotScored, record_of

RECIPE = RunSetRecipe.model_validate(
    {
        "name": "small",
        "regime": "v1.2",
        "files": "/files.toml",
        "hours": 2.0,
        "models": {},
        "agents": [{"name": "honest", "scaffold": "shell", "model": "none", "command": ["true"]}],
    }
)
CREATED = TrialCreated(
    cell="honest.m.gsm8k.0",
    recipe_digest="d",
    role="agent",
    agent="honest",
    base_model="m",
    benchmark="gsm8k",
    repetition=0,
    seed=1,
)
PREPARED = TrialPrepared(workspace="w", files="f", prompt="p", prompt_digest="d", statements=[])


def fit(epoch: int = 0) -> EnvironmentTested:
    return EnvironmentTested(epoch=epoch, host=f"host-{epoch}", version="1", report="r")


def ended(epoch: int = 0, **changes: object) -> AgentEnded:
    fields: dict[str, object] = {
        "epoch": epoch,
        "ended": "itself",
        "exit_status": 0,
        "prompts": 1,
        "limit": "",
        "secrets": [],
        "tokens": None,
        "money": None,
        "worked_s": 1.0,
        "trace": "t",
        "events": "e",
        "traffic": "",
    }
    return AgentEnded.model_validate(fields | changes)


def taken(failure: str = "") -> SubmissionTaken:
    return SubmissionTaken(epoch=0, weights_digest="w", failure=failure, model="m", manifest="x")


def check(name: str, *, passed: bool) -> CheckReached:
    fields = {
        "epoch": 0,
        "check": name,
        "version": "1",
        "verdict": "v",
        "passed": passed,
        "reason": "why",
        "report": "r",
    }
    return CheckReached.model_validate(fields)


def judgement(outcome: str) -> JudgementReached:
    fields = {"epoch": 0, "charge": "lookup", "outcome": outcome, "judged": "votes", "votes": "v", "question": "q"}
    return JudgementReached.model_validate(fields)


def passed(points: float | None, seed: int = 1, unscored: int = 0) -> PassScored:
    return PassScored(max_tokens=256, seed=seed, points=points, unscored=unscored, answers="a")


def evaluated(failure: str = "") -> SubmissionEvaluated:
    return SubmissionEvaluated(failure=failure, max_tokens=256, died=0, digest="d", report="r")


def override(violation: bool, about: str = "lookup", of: str = "votes") -> TrialOverridden:
    return TrialOverridden(number=0, of=of, about=about, violation=violation, reason="I looked at it", by="ada")


CLEAN: tuple[Event, ...] = (
    CREATED,
    PREPARED,
    fit(),
    AgentStarted(epoch=0, host="host-0", folder="/f"),
    ended(),
    taken(),
    check("identity", passed=True),
    check("contamination", passed=True),
    judgement("none"),
    passed(40.0),
    passed(50.0, seed=2),
    evaluated(),
)


def record(*events: Event, overrides: tuple[TrialOverridden, ...] = ()) -> Cell:
    return record_of("small-1", RECIPE, "key", fold_trial(events), overrides)


def replaced(old: Event, new: Event) -> tuple[Event, ...]:
    """The clean trial with another event in the place of one."""
    return tuple(new if event == old else event for event in CLEAN)


@pytest.mark.parametrize(
    ("events", "phase"),
    [
        (CLEAN[:1], "waiting"),
        (CLEAN[:3], "preparing"),
        (CLEAN[:4], "working"),
        (CLEAN[:6], "checking"),
        (CLEAN[:8], "judging"),
        (CLEAN[:10], "scoring"),
        ((*CLEAN, TrialScored(record={})), "scored"),
        ((*CLEAN[:4], TrialAbandoned(number=0, cause="c")), "abandoned"),
        ((*CLEAN[:4], TrialAbandoned(number=0, cause="c"), AgentRestarted(epoch=1, host="", cause="c")), "preparing"),
    ],
)
def test_phase_follows_from_the_events(events: tuple[Event, ...], phase: str) -> None:
    assert fold_trial(events).phase == phase


def test_what_was_recorded_before_the_last_start_does_not_count_but_for_what_it_starts_from() -> None:
    fold = fold_trial((*CLEAN[:8], AgentRestarted(epoch=1, host="host-0", cause="the supervisor is gone")))
    assert (fold.epoch, fold.host, fold.restarts) == (1, "", 1)
    assert fold.prepared == PREPARED
    assert (fold.started, fold.ended, fold.submission, fold.checks) == (None, None, None, ())
    again = fold_trial((*CLEAN[:8], AgentRestarted(epoch=1, host="host-0", cause="c"), fit(1)))
    assert again.host == "host-1"


def test_the_budget_of_starts_begins_anew_when_a_trial_is_taken_up_again() -> None:
    lost = [AgentRestarted(epoch=epoch, host="", cause="c") for epoch in (1, 2)]
    assert fold_trial((CREATED, *lost)).standing(2).restarts_left == 0
    assert fold_trial((CREATED, *lost, TrialAbandoned(number=0, cause="c"))).standing(2).restarts_left == 2


def test_a_stream_that_does_not_begin_as_a_trial_is_refused() -> None:
    with pytest.raises(NoTrial):
        fold_trial(())
    with pytest.raises(NoTrial):
        fold_trial(CLEAN[1:])


def test_clean_trial_has_the_mean_of_its_passes() -> None:
    made = record(*CLEAN)
    assert (made.status, made.raw, len(made.passes)) == ("clean", 45.0, 2)
    assert made.configuration is not None
    assert (made.configuration.scaffold_version, made.configuration.hours) == ("1", 2.0)
    assert (made.run_set, made.trial) == ("small-1/0", "small-1/honest.m.gsm8k.0")


@pytest.mark.parametrize(
    ("old", "new", "status", "raw"),
    [
        (CLEAN[6], check("identity", passed=False), "flagged", 45.0),
        (CLEAN[8], judgement("violation"), "flagged", 45.0),
        (CLEAN[8], judgement("unscored"), "unscored", 45.0),
        (CLEAN[9], passed(None, unscored=3), "unscored", None),
        (CLEAN[5], taken("there is no folder final_model"), "failed", None),
        (CLEAN[4], ended(secrets=["API_KEY"]), "failed", None),
        (CLEAN[11], evaluated("config.json is no JSON"), "failed", None),
    ],
)
def test_what_was_found_decides_what_the_score_stands_on(
    old: Event, new: Event, status: str, raw: float | None
) -> None:
    made = record(*replaced(old, new))
    assert (made.status, made.raw) == (status, raw)


def test_a_trial_without_an_evaluation_has_no_record() -> None:
    with pytest.raises(NotScored):
        record(*CLEAN[:9])


@pytest.mark.parametrize(
    ("outcome", "violation", "status"),
    [
        ("violation", False, "clean"),
        ("none", True, "flagged"),
        ("unscored", False, "clean"),
        ("unscored", True, "flagged"),
    ],
)
def test_a_person_s_decision_holds_over_the_votes_that_it_is_for(outcome: str, violation: bool, status: str) -> None:
    events = replaced(CLEAN[8], judgement(outcome))
    assert record(*events, overrides=(override(violation),)).status == status
    assert record(*events, overrides=(override(violation, of="others"),)) == record(*events)


def test_a_check_is_overridden_by_the_digest_of_its_report() -> None:
    events = replaced(CLEAN[7], check("contamination", passed=False))
    decided = override(violation=False, about="contamination", of="r")
    assert record(*events).status == "flagged"
    assert record(*events, overrides=(decided,)).status == "clean"


def test_a_reference_has_no_configuration() -> None:
    created = CREATED.model_copy(update={"role": "base", "agent": "base", "cell": "base.m.gsm8k.0"})
    made = record(created, passed(7.0), evaluated())
    assert (made.role, made.configuration, made.raw) == ("base", None, 7.0)
