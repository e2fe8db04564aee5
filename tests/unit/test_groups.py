"""How groups close, and what a step's batch is made of."""

from activities.folds import RolloutFold, fold_run_streams
from activities.groups import group_closed
from activities.validation import validation_closed
from stepwell.agent.protocol import StopReason
from stepwell.events import GroupClosed, RolloutEnded, RolloutFailed, RolloutGraded
from stepwell.events.children import Commitment
from stepwell.events.group_closed import Fate


def rollout(score: float | None, *, failure: str | None = None) -> RolloutFold:
    ended = RolloutEnded(
        reason=StopReason.FINISHED,
        epoch=0,
        turns=1,
        generated_tokens=3,
        total_tokens=9,
        content="c" * 64,
        changed="d" * 64,
        tree="e" * 64,
        verdict_key="k" * 64,
    )
    graded = None
    if score is not None:
        graded = RolloutGraded(verdict_key="k" * 64, score=score, timed_out=False, verdict_head="v", reused=False)
    failed = None if failure is None else RolloutFailed(failure=failure, cause=f"{failure} it was")
    events = tuple(event for event in (ended, graded, failed) if event is not None)
    return RolloutFold(len(events), 0, (), ended, graded, failed, 0, events, "h" * 64)


def closed(*rollouts: RolloutFold, purpose: str = "train") -> GroupClosed:
    return group_closed({f"rollout/r/0/0/{index}": each for index, each in enumerate(rollouts)}, purpose)


def test_failed_rollout_has_no_score_and_does_not_fail_its_group() -> None:
    group = closed(rollout(1.0), rollout(None, failure="infra"), rollout(0.0))
    assert group.fate is Fate.TRAINED
    assert group.scores == [1.0, None, 0.0]


def test_group_with_one_vote_is_abandoned_with_the_cause() -> None:
    group = closed(rollout(1.0), rollout(None, failure="infra"))
    assert group.fate is Fate.ABANDONED
    assert group.cause == "infra it was"


def test_broken_data_quarantine_the_prompt() -> None:
    group = closed(rollout(None, failure="infra"), rollout(None, failure="data"))
    assert group.fate is Fate.QUARANTINED
    assert group.cause == "data it was"


def test_validation_needs_every_score() -> None:
    assert closed(rollout(1.0), rollout(0.0), purpose="validation").fate is Fate.VALIDATED
    group = closed(rollout(1.0), rollout(1.0), rollout(None, failure="infra"), purpose="validation")
    assert group.fate is Fate.ABANDONED


def test_closing_event_says_the_same_whoever_attempted_how_often() -> None:
    once = closed(rollout(1.0), rollout(0.0))
    again = closed(rollout(1.0), rollout(0.0))
    assert once.rollout_facts == again.rollout_facts
    assert once.rollout_facts != closed(rollout(1.0), rollout(1.0)).rollout_facts


def test_pass_1_is_the_mean_share_and_pass_k_the_share_of_tasks_with_any() -> None:
    groups = [closed(rollout(a), rollout(b), purpose="validation") for a, b in ((1.0, 0.0), (0.0, 0.0), (1.0, 1.0))]
    result = validation_closed(groups, k=2, heads=Commitment(count=3, heads="h", facts="f"))
    assert (result.passed, result.graded) == ([1, 0, 2], [2, 2, 2])
    assert result.pass_1 == (0.5 + 0.0 + 1.0) / 3
    assert result.pass_k == 2 / 3


def test_a_run_without_events_begins_at_version_0() -> None:
    fold = fold_run_streams([], [], [])
    assert (fold.version, fold.completed, fold.admitted, fold.operators.depth, fold.finished) == (
        None,
        0,
        0,
        None,
        None,
    )
