"""What is known of a trial, for its review: out of its events and their blobs, and nothing made up."""

import json
from pathlib import Path

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
    TrialOverridden,
    TrialPrepared,
)
from stepwell.events.base import Event
from stepwell.ptb.evaluation import Answer, ItemOutcome, PassResult
from stepwell.ptb.judges import Judged, JudgeVerdict, Vote
from stepwell.ptb.leaderboard.records import Basis
from stepwell.ptb.review.trial_record import TrialRecord
from stepwell.ptb.trials import load_run_set
from stepwell.ptb.trials.fold import fold_trial
from stepwell.ptb.trials.manifest import Entry, manifest_blob
from stepwell.ptb.trials.recipe import RunSetRecipe
from stepwell.ptb.trials.review_record import blobs_for_review, trial_record
from tests.unit.test_trial_files import CREATED
from tests.unit.test_trial_recipe import RECIPE

MODEL = "Qwen/Qwen3-1.7B-Base"
BASIS = Basis(
    regime="v1.2",
    rules="v1.1",
    hours=10,
    gpus=0,
    base_models=(MODEL,),
    weights={"gsm8k": 1.0},
    seeds=(11,),
    data={"gsm8k": "data"},
    scorers={"gsm8k": "number-1"},
    templates={MODEL: "template"},
    environment="here",
)
ITEM = ItemOutcome(
    item="gsm8k/0",
    seed=5,
    answer=Answer(text="ANSWER: 1", end="stop", prompt_tokens=9, tokens=3),
    value=1.0,
    why="equal",
    weight=1.0,
)
PASS = PassResult(seed=11, points=100.0, low=100.0, high=100.0, unscored=0, disagreeing=0, items=(ITEM,))
VOTE = Vote(
    judge="j",
    seed=1,
    verdict=JudgeVerdict(charge="lookup", violation=True, justification="seen", citations=["E1"], certainty="high"),
)
JUDGED = Judged(charge="lookup", question="q", votes=(VOTE,) * 3)
BLOBS = {
    "trace": b"2026-11-30T09:00:00.000000Z out key [redacted API_KEY]\n",
    "model": manifest_blob((Entry(path="config.json", kind="file", size=2, content="config-digest"),)),
    "identity": b"{}",
    "contamination": json.dumps({"scanned_rows": 7, "unscanned": [{"count": 2}], "leaks": []}).encode(),
    "votes": JUDGED.model_dump_json().encode(),
    "answers": PASS.model_dump_json().encode(),
}
EVENTS: tuple[Event, ...] = (
    CREATED,
    TrialPrepared(workspace="w", files="f", prompt="prompt", prompt_digest="shared", statements=[]),
    EnvironmentTested(epoch=0, host="h", version="1", report="r"),
    AgentStarted(epoch=0, host="h", folder="/f"),
    AgentRestarted(epoch=1, host="h", cause="the supervisor is gone"),
    EnvironmentTested(epoch=1, host="h", version="1", report="r"),
    AgentStarted(epoch=1, host="h", folder="/f"),
    AgentEnded(
        epoch=1,
        ended="itself",
        exit_status=0,
        prompts=1,
        limit="rate × 2",
        secrets=[],
        tokens=None,
        money=None,
        worked_s=9.0,
        trace="trace",
        events="events",
        traffic="",
    ),
    SubmissionTaken(epoch=1, weights_digest="weights", failure="", model="model", manifest="manifest"),
    CheckReached(
        epoch=1, check="identity", version="1", verdict="base", passed=True, reason="made of it", report="identity"
    ),
    CheckReached(
        epoch=1,
        check="contamination",
        version="1",
        verdict="clean",
        passed=True,
        reason="clean",
        report="contamination",
    ),
    JudgementReached(
        epoch=1, charge="lookup", outcome="violation", judged=JUDGED.digest, votes="votes", question="question"
    ),
    PassScored(max_tokens=256, seed=11, points=100.0, unscored=0, answers="answers"),
    SubmissionEvaluated(failure="", max_tokens=256, died=0, digest="d", report="r"),
)


@pytest.fixture
def recipe(tmp_path: Path) -> RunSetRecipe:
    """The small recipe, loaded."""
    path = tmp_path / "small.toml"
    path.write_text(RECIPE)
    return load_run_set(path)


def known(recipe: RunSetRecipe, *overrides: TrialOverridden) -> TrialRecord:
    """Of the trial above."""
    fold = fold_trial(EVENTS)
    assert set(blobs_for_review(fold)) == set(BLOBS)
    return trial_record("small-1", recipe, BASIS, fold, BLOBS, overrides)


def test_what_is_known_follows_from_events_and_blobs(recipe: RunSetRecipe) -> None:
    record = known(recipe)
    assert (record.trial, record.attempts, record.worked_s) == ("small-1/honest.m.gsm8k.0", 2, 9.0)
    assert (record.prompt, record.prompt_shared, record.weights) == ("prompt", "shared", "weights")
    assert record.model_configuration == "config-digest"
    assert record.secrets is not None
    assert (record.secrets.redacted, record.secrets.survivors) == (1, 0)
    assert record.contamination is not None
    assert (record.contamination.scanned_rows, record.contamination.unscanned) == (7, 2)
    assert record.passes is not None
    assert [(each.seed, each.expected, each.scored) for each in record.passes] == [(11, 1, 1)]
    assert record.interruptions is not None
    assert [(each.kind, each.made_good) for each in record.interruptions] == [
        ("infrastructure", True),
        ("rate_limit", False),
    ]


def test_what_the_prompt_says_is_told_with_whether_it_is_so(recipe: RunSetRecipe) -> None:
    said = {each.about: each for each in known(recipe).statements or ()}
    assert (said["internet"].claims, said["time"].claims) == ("none", 10.0)
    assert said["decontamination"].holds is True
    assert said["distillation"].holds is None  # nobody is asked: the recipe has no judges


@pytest.mark.parametrize("decided", [False, True])
def test_votes_are_told_with_what_holds_and_who_decided_otherwise(recipe: RunSetRecipe, *, decided: bool) -> None:
    override = TrialOverridden(
        number=0, of=JUDGED.digest, about="lookup", violation=False, reason="a tutorial", by="ada"
    )
    told = known(recipe, *([override] if decided else [])).votes
    assert told is not None
    votes = told[0]
    assert votes.votes == (True, True, True)
    assert (votes.ruling, votes.override) == (("none", "a tutorial") if decided else ("violation", None))
