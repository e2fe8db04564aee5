"""The fold of a run's events, against stories whose numbers are known."""

import json
import random

import pytest

from stepwell.events.group_closed import Fate
from stepwell.events.run_finished import RunEnd
from stepwell.report.cover import Activity
from stepwell.report.picture import RunPicture
from stepwell.report.rollouts import RecoveryKind
from stepwell.report.snapshot import snapshot
from tests.synthetic_run import T0, Story, learning_run

METRICS = {"loss": -0.01, "grad_norm": 0.8, "mismatch_mean": 3e-5, "mismatch_max": 4e-4, "tokens": 1200.0}


def picture_of(story: Story, run: str = "micro-1") -> RunPicture:
    picture = RunPicture(run)
    picture.see_all(story.told)
    return picture


def one_step() -> Story:
    """Rollout from 10 to 20, graded to 22, trained from 23 to 27, loaded from 28 to 29, over at 30."""
    story = Story()
    story.created(0)
    story.version_0(9, 8)
    story.dispatched(10, 0, prompts=1)
    stream = "rollout/micro-1/0/0/0"
    story.attempt(10, stream, "a")
    story.turn(15, stream, 0, generate_s=4, tool_s=1, tokens=30)
    story.turn(20, stream, 1, generate_s=3, tool_s=2, tokens=20)
    story.ended(20, stream, "k" * 64)
    story.verdict(22, "k" * 64, 1.0, 2)
    story.graded(22, stream, 1.0, "k" * 64)
    story.closed(22.5, "0", 0, Fate.TRAINED)
    story.admitted(23, 0, reward_mean=0.5, rollouts=4, masked=1)
    story.trained(27, 0, 4, METRICS)
    story.completed(27.5, 0)
    story.engine(5, "e1")
    story.loaded(29, "e1", 1, 1)
    story.finished(30, RunEnd.MAX_STEPS, 1)
    return story


def test_a_step_has_every_number() -> None:
    (step,) = picture_of(one_step()).done_steps
    assert (step.reward_mean, step.rollouts, step.masked) == (0.5, 4, 1)
    assert (step.loss, step.grad_norm, step.mismatch_mean, step.mismatch_max) == (-0.01, 0.8, 3e-5, 4e-4)
    assert (step.trained_tokens, step.generated_tokens) == (1200, 50)
    assert step.training_s == 4
    assert step.step_s == pytest.approx(17)  # from its dispatch: nothing was trained before


def test_overhead_is_what_no_activity_covers() -> None:
    split = picture_of(one_step()).time_split()
    assert split is not None
    assert split.wall_s == pytest.approx(20)
    assert split.by_activity_s == pytest.approx(
        {
            Activity.GENERATION: 7,
            Activity.TOOLS: 3,
            Activity.GRADING: 2,
            Activity.TRAINING: 4,
            Activity.LOADING: 1,
        }
    )
    assert split.overhead_s == pytest.approx(3)  # 22 to 23, 27 to 28, 29 to 30
    assert split.overhead == pytest.approx(0.15)


def test_the_order_in_which_streams_are_read_changes_no_number() -> None:
    story = learning_run(steps=9)
    by_stream: dict[str, list] = {}
    for told in story.told:
        by_stream.setdefault(told[0].stream, []).append(told)
    order = sorted(by_stream, key=lambda stream: (stream.startswith("verdict/"), stream))
    shuffled = RunPicture("micro-1")
    for stream in order:
        shuffled.see_all(by_stream[stream])
    straight = picture_of(story)
    assert shuffled.time_split() == straight.time_split()
    assert shuffled.done_steps == straight.done_steps
    assert shuffled.rollouts.tokens.bins == straight.rollouts.tokens.bins
    assert shuffled.recoveries == straight.recoveries


def test_an_event_that_is_read_twice_counts_once() -> None:
    story = one_step()
    picture = picture_of(story)
    picture.see_all(random.Random(1).sample(story.told, len(story.told)))
    assert picture.rollouts.tokens.total == 50
    assert picture.rollouts.graded == 1
    assert picture.training_fates.dispatched == 1


def test_other_runs_and_their_verdicts_are_left_out() -> None:
    story = one_step()
    stranger = Story("micro-11")
    stranger.created(50)
    stranger.turn(60, "rollout/micro-11/0/0/0", 0, generate_s=1, tool_s=1, tokens=999)
    stranger.verdict(61, "9" * 64, 1.0, 5)
    picture = picture_of(story)
    picture.see_all(stranger.told)
    assert picture.rollouts.tokens.total == 50
    assert picture.newest_s == T0 + 30


@pytest.mark.parametrize(
    ("until", "in_flight", "grading", "graded"),
    [("attempt/a", 1, 0, 0), ("turn/0/1", 1, 0, 0), ("ended", 0, 1, 0), ("graded", 0, 0, 1)],
)
def test_rollouts_in_flight_are_begun_and_not_ended(until: str, in_flight: int, grading: int, graded: int) -> None:
    picture = RunPicture("micro-1")
    for envelope, event in one_step().told:
        picture.see(envelope, event)
        if envelope.key == until:
            break
    rollouts = picture.rollouts
    assert (rollouts.in_flight, rollouts.grading, rollouts.graded) == (in_flight, grading, graded)


def test_a_failed_rollout_is_counted_with_its_cause() -> None:
    story = Story()
    story.attempt(1, "rollout/micro-1/0/0/0", "a")
    story.failed(2, "rollout/micro-1/0/0/0", "engine unreachable")
    rollouts = picture_of(story).rollouts
    assert (rollouts.failed, rollouts.in_flight, rollouts.graded) == (1, 0, 0)
    assert rollouts.failures[0].cause == "engine unreachable"


def test_recoveries_are_told_apart() -> None:
    story = Story()
    story.created(0)
    story.engine(1, "e1")
    story.attempt(2, "rollout/micro-1/0/0/0", "a")
    story.attempt(3, "rollout/micro-1/0/0/0", "b", worker="a/7", resumed_at=2)
    story.restarted(4, "rollout/micro-1/0/0/0", 1)
    story.engine(5, "e2")
    story.attempt(6, "weights/micro-1", "t1", worker="a/2")
    story.trained(7, 0, 1, METRICS)
    story.attempt(8, "weights/micro-1", "t2", worker="a/2")
    story.attempt(9, "weights/micro-1", "t3", worker="a/4")
    assert [recovery.kind for recovery in picture_of(story).recoveries] == [
        RecoveryKind.ROLLOUT_RETAKEN,
        RecoveryKind.ROLLOUT_RESTARTED,
        RecoveryKind.ENGINE_RESTARTED,
        RecoveryKind.TRAINER_RETAKEN,
    ]


def test_an_attempt_at_a_graded_rollout_is_no_recovery() -> None:
    story = one_step()
    story.attempt(31, "rollout/micro-1/0/0/0", "b")
    picture = picture_of(story)
    assert picture.recoveries == []
    assert picture.rollouts.in_flight == 0


def test_a_validation_has_its_scores_with_intervals() -> None:
    story = Story()
    story.validation_opened(1, 8, "main", tasks=4)
    story.validation_closed(2, 8, "main", passed=[4, 0, 2, 0])
    picture = picture_of(story)
    (result,) = picture.results("main")
    assert (result.version, result.pass_1, result.pass_k, result.k, result.tasks) == (8, 0.375, 0.5, 4, 4)
    assert result.pass_k_interval is not None
    assert result.pass_k_interval.low == pytest.approx(0.1500, abs=1e-4)  # Wilson, 2 of 4
    assert result.pass_k_interval.high == pytest.approx(0.8500, abs=1e-4)
    assert result.pass_1_interval is not None
    assert result.pass_1_interval.low < 0.375 < result.pass_1_interval.high


def test_fates_sum_to_what_was_dispatched() -> None:
    story = Story()
    story.dispatched(1, 0, prompts=3)
    story.closed(2, "0", 0, Fate.TRAINED)
    story.closed(3, "0", 1, Fate.QUARANTINED, "prompt of 900 tokens, the context holds 512")
    fates = picture_of(story).training_fates
    assert (fates.dispatched, fates.closed, fates.open) == (3, 2, 1)
    assert fates.causes == ["step 0 · prompt 1: quarantined: prompt of 900 tokens, the context holds 512"]


def test_recent_tokens_a_second_fall_to_nothing_when_nothing_is_generated() -> None:
    story = Story()
    for second in range(40):
        story.turn(second, f"rollout/micro-1/0/0/{second}", 0, generate_s=1, tool_s=0, tokens=100)
    tokens = picture_of(story).rollouts.tokens
    assert tokens.total == 4000
    assert tokens.recent_per_s(T0 + 39) == pytest.approx(100)
    assert tokens.recent_per_s(T0 + 49) == pytest.approx(50)
    assert tokens.recent_per_s(T0 + 99) == 0


def test_time_left_is_told_by_the_cadence_of_steps() -> None:
    story = Story()
    story.created(0)
    for step in range(4):
        story.dispatched(10 * step, step)
        story.admitted(10 * step + 5, step, 0.5)
        story.trained(10 * step + 8, step, 2, METRICS)
    assert picture_of(story).eta_s() == pytest.approx(440)  # 44 steps at 10 s


def test_an_end_leaves_no_time() -> None:
    assert picture_of(one_step()).eta_s() is None
    assert RunPicture("micro-1").eta_s() is None


def test_the_head_is_that_of_the_runs_own_stream() -> None:
    story = one_step()
    picture = picture_of(story)
    head = [envelope for envelope, _ in story.told if envelope.stream == "run/micro-1"][-1]
    assert (picture.head_seq, picture.head_hash) == (head.seq, head.hash)


def test_workers_say_what_they_did_last() -> None:
    workers = {worker.actor: worker.last for worker in picture_of(one_step()).workers.newest(8)}
    assert workers == {
        "control:a/0": "RunFinished",
        "engine:e1": "loaded version 1 in 1.0 s",
        "sandbox:a/1": "graded step 0 · prompt 0 · sample 0: 1",
        "trainer:a/2": "trained step 0 in 4.0 s",
    }


def test_examples_are_the_first_and_the_newest_of_each_kind() -> None:
    story = Story()
    for step, score in enumerate([0.0, 1.0, 0.0, 0.0]):
        story.attempt(step, f"rollout/micro-1/{step}/0/0", "a")
        story.graded(step, f"rollout/micro-1/{step}/0/0", score)
    story.graded(9, "rollout/micro-1/v0-main/0/0", 1.0)
    assert [(example.why, example.stream) for example in picture_of(story).examples.rollouts] == [
        ("First solved", "rollout/micro-1/1/0/0"),
        ("First not solved", "rollout/micro-1/0/0/0"),
        ("Newest not solved", "rollout/micro-1/3/0/0"),
    ]


def test_a_snapshot_is_json() -> None:
    plain = json.loads(json.dumps(snapshot(picture_of(learning_run(9))), allow_nan=False))
    assert plain["end"] == "target"
    assert len(plain["steps"]) == 9
    assert plain["validations"][0]["dataset"] == "main"
    assert plain["fates"]["training"] == {
        "dispatched": 18,
        "replaced": 0,
        "open": 0,
        "trained": 18,
        "causes": [],
    }
