"""What recoveries cost, told from the ledger; a pause is none."""

import json

import pytest

from stepwell.agent.protocol import StopReason
from stepwell.events.group_closed import Fate
from stepwell.report.page import render_page
from stepwell.report.picture import RunPicture
from stepwell.report.rollouts import RecoveryKind
from stepwell.report.snapshot import snapshot
from tests.synthetic_run import Story

ROLLOUT = "rollout/micro-1/0/0/0"


def picture_of(story: Story) -> RunPicture:
    picture = RunPicture(story.run)
    picture.see_all(story.told)
    return picture


def turn(story: Story, at_s: float, number: int, epoch: int = 0, stream: str = ROLLOUT, tokens: int = 10) -> None:
    story.turn(at_s, stream, number, generate_s=1, tool_s=0, tokens=tokens, epoch=epoch)


def lost_and_retaken() -> Story:
    """Two turns, lost after 12 s, taken up at 20 s; lost again before a turn, taken up at 26 s."""
    story = Story()
    story.attempt(10, ROLLOUT, "a")
    turn(story, 11, 0)
    turn(story, 12, 1)
    story.attempt(20, ROLLOUT, "b", worker="a/7", resumed_at=2)
    story.attempt(26, ROLLOUT, "c", worker="a/8", resumed_at=2)
    turn(story, 28, 2)
    return story


def test_what_is_lost_is_the_time_from_the_last_recorded_event_to_the_next_attempt() -> None:
    work = picture_of(lost_and_retaken()).recovery_work
    assert (work.attempts, work.turns, work.turns_repeated, work.recoveries) == (3, 3, 0, 2)
    assert (work.lost_s, work.longest_s) == (pytest.approx(14), pytest.approx(8))
    assert work.words() == (
        "3 attempts, 3 turns recorded, 0 of them repeated; 2 recoveries lost 14.0 s, 7.0 s each, the longest 8.0 s"
    )


def test_turns_of_a_rollout_that_was_started_over_are_repeated_up_to_where_it_was() -> None:
    story = lost_and_retaken()
    story.restarted(29, ROLLOUT, 1)
    for number in range(5):
        turn(story, 30 + number, number, epoch=1)
    picture = picture_of(story)
    assert picture.recovery_work.turns == 8
    assert picture.recovery_work.turns_repeated == 3
    assert [recovery.kind for recovery in picture.recoveries][-1] is RecoveryKind.ROLLOUT_RESTARTED


@pytest.mark.parametrize(
    ("hold", "release", "is_pause"),
    [
        (("pause", {"at": "now"}), ("resume", {}), True),
        (("pause", {"at": "now"}), None, True),
        (("pause", {"at": "step"}), ("resume", {}), False),
        (("drain", {}), ("resume", {}), False),
        (("limit/hours", {}), ("limit", {"limit": "hours", "value": 9}), True),
        (("publish/1", {}), ("approve", {"gate": "publish/1"}), False),
    ],
    ids=["paused and resumed", "still paused", "paused at the step", "drained", "a limit", "a gate"],
)
def test_a_rollout_that_goes_on_after_a_pause_at_once_was_not_lost(
    hold: tuple[str, dict], release: tuple[str, dict] | None, is_pause: bool
) -> None:
    story = Story()
    story.attempt(10, ROLLOUT, "a")
    turn(story, 12, 0)
    name, arguments = hold
    if "/" in name:
        story.held(11.5, name)
    else:
        story.acted(11.5, name, **arguments)
    if release is not None:
        story.acted(60, release[0], **release[1])
    story.attempt(61, ROLLOUT, "b", resumed_at=1)
    picture = picture_of(story)
    assert len(picture.recoveries) == (0 if is_pause else 1)
    assert picture.recovery_work.after_pauses == (1 if is_pause else 0)
    assert picture.recovery_work.lost_s == (0 if is_pause else pytest.approx(49))


def test_a_loss_long_after_a_pause_is_a_loss() -> None:
    story = Story()
    story.attempt(10, ROLLOUT, "a")
    story.acted(11, "pause", at="now")
    story.acted(20, "resume")
    story.attempt(21, ROLLOUT, "b")
    turn(story, 25, 0)
    story.attempt(40, ROLLOUT, "c", resumed_at=1)
    picture = picture_of(story)
    assert [recovery.lost_s for recovery in picture.recoveries] == [pytest.approx(15)]
    assert picture.recovery_work.after_pauses == 1


def test_a_trainer_that_dies_in_a_step_loses_what_it_had_done_of_it() -> None:
    story = Story()
    story.attempt(10, "weights/micro-1", "t1")
    story.attempt(35, "weights/micro-1", "t2", worker="a/5")
    (recovery,) = picture_of(story).recoveries
    assert (recovery.kind, recovery.lost_s) == (RecoveryKind.TRAINER_RETAKEN, pytest.approx(25))


def run_that_drops_its_long_rollouts() -> Story:
    """Two prompts: of the first both rollouts are trained, the second is abandoned after long ones."""
    story = Story()
    story.created(0)
    story.dispatched(1, 0)
    for sample in range(2):
        stream = f"rollout/micro-1/0/0/{sample}"
        turn(story, 2, 0, stream=stream, tokens=100)
        story.ended(3, stream, generated_tokens=100)
        story.graded(4, stream, float(sample), reused=True)
        long = f"rollout/micro-1/0/1/{sample}"
        turn(story, 2, 0, stream=long, tokens=400)
        turn(story, 5, 1, stream=long, tokens=500)
        story.failed(6, long, "no engine")
    story.closed(7, "0", 0, Fate.TRAINED)
    story.closed(7, "0", 1, Fate.ABANDONED, "no engine")
    story.replaced(7, 0, prompt=2, replaces=1)
    turn(story, 8, 0, stream="rollout/micro-1/0/2/0", tokens=9999)  # its prompt has no fate yet
    turn(story, 8, 0, stream="rollout/micro-1/v0-main/0/0", tokens=9999)
    story.closed(9, "v0-main", 0, Fate.VALIDATED)
    return story


def test_lengths_of_trained_rollouts_are_compared_with_all_whose_prompts_have_their_fate() -> None:
    tokens, turns = picture_of(run_that_drops_its_long_rollouts()).lengths
    assert (tokens.trained.count, tokens.generated.count) == (2, 4)
    assert (tokens.trained.mean, tokens.generated.mean) == (100, 500)
    assert (tokens.ks, turns.difference) == (0.5, pytest.approx(1 / 1.5 - 1))


@pytest.mark.parametrize(("reason", "votes"), [(StopReason.FINISHED, 2), (StopReason.CONTEXT, 1)])
def test_a_masked_rollout_has_no_vote(reason: StopReason, votes: int) -> None:
    story = Story()
    story.created(0)
    for sample in range(2):
        stream = f"rollout/micro-1/0/0/{sample}"
        turn(story, 2, 0, stream=stream, tokens=100)
        story.ended(3, stream, reason=reason if sample else StopReason.FINISHED)
        story.graded(4, stream, 0.0, reused=True)
    story.closed(5, "0", 0, Fate.TRAINED)
    assert picture_of(story).lengths[0].trained.count == votes


def test_a_replacement_is_dispatched_too() -> None:
    fates = picture_of(run_that_drops_its_long_rollouts()).training_fates
    assert fates.words() == "3 dispatched (1 in place of failed ones) = 1 abandoned + 1 trained + 1 open"


def test_page_and_snapshot_say_what_was_dropped() -> None:
    picture = picture_of(run_that_drops_its_long_rollouts())
    page = render_page(picture)
    assert "BIAS: trained rollouts are 80.0 % shorter than generated ones in tokens (KS 0.50)." in page
    assert "A difference of the means above 5%, or a KS statistic above 0.1, is called a bias." in page
    assert "step 0 · prompt 1: abandoned: no engine" in page
    plain = json.loads(json.dumps(snapshot(picture), allow_nan=False))
    fates = plain["fates"]["training"]
    assert fates["dispatched"] == fates["abandoned"] + fates["trained"] + fates["open"] == 3
    assert plain["lengths"][0]["is_biased"] is True
    assert plain["recovery_work"]["turns"] == 8
