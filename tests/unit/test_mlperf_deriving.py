"""A run's benchmark log: what is derived of which event, where the clock stops, and what is refused."""

from typing import Any

import pytest

from stepwell.events import RunForked, StepDispatched, StepTrained
from stepwell.mlperf.benchmark_log import NotLoggable, Status
from stepwell.mlperf.deriving import derive
from stepwell.mlperf.lines import Line, lines_of
from stepwell.mlperf.submission import Submission
from tests.benchmark_story import FIRST, SUBMISSION, benchmark_recipe, benchmark_story, facts_of, validated
from tests.synthetic_run import T0
from tests.told import told

START_MS = round(1000 * T0)


def lines(story: Any = None, submission: Submission = SUBMISSION) -> list[Line]:
    """Lines of a story's log."""
    return lines_of(derive(facts_of(story or benchmark_story()), submission))


def values(found: list[Line]) -> dict[str, Any]:
    """Last value of each key."""
    return {line.key: line.value for line in found}


def test_settings_come_from_the_recorded_recipe_task_set_and_batch() -> None:
    said = values(lines())
    expected = {
        "submission_benchmark": "qwen35_397b_grpo",
        "seed": 7,
        "global_batch_size": 256,
        "max_sequence_length": 65536,
        "train_samples": 700 * 16,
        "eval_samples": 251,
        "opt_base_learning_rate": 1e-6,
        "opt_end_learning_rate": 1e-6,
        "opt_gradient_clip_norm": 0.125,
        "lowest_numerical_precision_in_linear": "fp32",
        "lowest_numerical_precision_in_comm": "fp32",
        "tensor_parallelism": 1,
        "micro_batch_size": 3,
        "gradient_accumulation_steps": 2,
        "truncated_importance_sampling_type": "seq-mask-tis",
        "target_accuracy": 0.69,
        "init_checkpoint_step": 0,
    }
    assert {key: said[key] for key in expected} == expected
    assert said["config_filename"].startswith("rehearsal-")


def test_every_line_names_its_event_at_that_events_time_or_who_declares_it() -> None:
    story = benchmark_story()
    times = {(envelope.stream, envelope.seq): envelope.time for envelope, _ in story.told}
    for line in lines(story):
        if "declared" in line.metadata:
            assert line.key == "cache_clear" or line.key.startswith(
                ("submission_", "lowest_numerical_precision_in_comm")
            )
            continue
        stamp = times[str(line.metadata["stream"]), int(str(line.metadata["seq"]))]
        seconds = (line.time_ms - START_MS) / 1000
        assert (
            stamp[14:19]
            == f"{int(START_MS / 60_000 + seconds / 60) % 60:02d}:{int(START_MS / 1000 + seconds) % 60:02d}"
        )


def test_inline_the_clock_runs_from_the_first_dispatch_to_the_result_that_passed() -> None:
    log = derive(facts_of(benchmark_story()), SUBMISSION)
    assert log.began.time_ms - START_MS == 60_000
    assert (log.stop.status, log.stop.version, log.samples) == (Status.SUCCESS, 20, 5120)
    assert log.stop.place.stream == "run/rehearsal-1"
    assert log.stop.place.time_ms - START_MS == (60 * 20 + 59) * 1000
    assert log.minutes == pytest.approx((60 * 20 + 59 - 60) / 60)


def test_offline_the_clock_stops_at_the_weight_update_of_the_lowest_version_that_passed() -> None:
    log = derive(facts_of(benchmark_story(mode="offline")), SUBMISSION)
    assert (log.stop.version, log.stop.place.stream) == (20, "weights/rehearsal-1")
    assert log.stop.place.time_ms - START_MS == (60 * 20 + 55) * 1000
    assert [each.version for each in log.evaluations] == [18, 19, 20]
    assert max(step.version for step in log.steps) == 20
    found = lines_of(log)
    assert [line.key for line in found[-4:]] == ["tracked_stats", "eval_accuracy", "eval_stop", "run_stop"]
    assert found[-1].time_ms < found[-2].time_ms, "the log is in the order of what it tells, not of time"
    assert [line.key for line in found].count("block_start") == 1


def test_versions_are_evaluated_in_blocks_of_their_own() -> None:
    keys = ("block_start", "block_stop", "eval_start", "eval_accuracy")
    told_of = [(line.key, line.metadata["samples_count"]) for line in lines() if line.key in keys]
    assert told_of == [
        ("block_start", 4608),
        ("block_stop", 4608),
        ("eval_start", 4608),
        ("eval_accuracy", 4608),
        ("block_start", 256),
        ("block_stop", 256),
        ("eval_start", 4864),
        ("eval_accuracy", 4864),
        ("block_start", 256),
        ("block_stop", 256),
        ("eval_start", 5120),
        ("eval_accuracy", 5120),
    ]


def test_what_was_measured_of_steps_and_validations_is_tracked() -> None:
    stats = [line for line in lines() if line.key == "tracked_stats"]
    first = [dict(line.value) for line in stats if line.metadata["step"] == 1 and isinstance(line.value, dict)]
    assert first == [
        {"reward": 0.25, "global_valid_seqs": 250.0},
        {"reduced_train_loss": -0.01, "grad_norm": 0.08, "global_valid_toks": 1e6, "masked_mismatch": 2.0},
        {"policy_training_time": 25.0},
    ]
    last = [line.value for line in stats[-2:]]
    assert last[0] == {"validation_time": 2.0}
    assert isinstance(last[1], dict)
    intervals = {name: value for name, value in last[1].items() if name.endswith(("_low", "_high"))}
    scores = {name: value for name, value in last[1].items() if name not in intervals}
    assert scores == {"pass_1": pytest.approx(178 / 4 / 251), "pass_k": 175 / 251, "pass_all_k": 1 / 251}
    assert intervals.keys() == {f"{name}_{end}" for name in scores for end in ("low", "high")}
    for name, score in scores.items():
        assert intervals[f"{name}_low"] < score < intervals[f"{name}_high"]


def test_a_run_that_ended_below_the_target_is_aborted() -> None:
    log = derive(facts_of(benchmark_story(solved=(100, 173))), SUBMISSION)
    assert (log.stop.status, log.stop.version) == (Status.ABORTED, 19)
    assert lines_of(log)[-1].metadata["status"] == "aborted"


def test_the_target_must_be_passed_and_not_only_reached() -> None:
    story = benchmark_story(recipe=benchmark_recipe(validation={"target": 175 / 251}))
    assert derive(facts_of(story), SUBMISSION).stop.status is Status.ABORTED


def test_a_version_0_above_the_target_ends_no_run() -> None:
    story = benchmark_story()
    validated(story, 30, 0, 200)
    log = derive(facts_of(story), SUBMISSION)
    assert log.stop.version == 20
    assert (log.evaluations[0].version, log.began.time_ms - START_MS) == (0, 30_000)


def test_a_run_under_way_is_refused() -> None:
    story = benchmark_story(solved=(100,))
    story.told = story.told[:-1]
    with pytest.raises(NotLoggable, match=r"under way: no version is above validation\.target = 0\.69"):
        lines(story)


def test_offline_a_run_is_refused_until_the_last_version_is_evaluated() -> None:
    story = benchmark_story(mode="offline")
    story.told = story.told[:-1]
    with pytest.raises(NotLoggable, match=r"under way: offline, a version that is yet to be evaluated may have passed"):
        lines(story)


def test_a_fork_is_refused() -> None:
    story = benchmark_story()
    forked = RunForked.model_construct(type="RunForked")
    facts = facts_of(story)
    with pytest.raises(NotLoggable, match="is a fork"):
        derive(type(facts)(facts.run, [*facts.events, (facts.events[0][0], forked)], facts.tasks, None), SUBMISSION)


def test_a_rate_that_an_operator_set_is_refused_with_the_step() -> None:
    story = benchmark_story()
    changed = told(StepDispatched, step=4, version=4, tasks=[], settings={"optimiser.learning_rate": 2e-6})
    story.tell(8000, "run/rehearsal-1", changed)
    with pytest.raises(NotLoggable, match=r"optimiser\.learning_rate to 2e-06 from step 4 on \(run/rehearsal-1 #\d+\)"):
        lines(story)
    beyond = benchmark_story(mode="offline")
    beyond.tell(8000, "run/rehearsal-1", changed.model_copy(update={"step": FIRST + 4}))
    assert lines(beyond), "what comes after the version that passed is not in the log"


def test_validations_of_other_tasks_than_the_runs_are_refused() -> None:
    facts = facts_of(benchmark_story())
    fewer = facts.tasks.model_copy(update={"main": facts.tasks.main[:250]})
    with pytest.raises(NotLoggable, match="v18-main has 251 tasks, the run's set 'main' has 250"):
        derive(type(facts)(facts.run, facts.events, fewer, None), SUBMISSION)


def test_what_neither_side_says_is_named_with_what_is_allowed() -> None:
    recipe = benchmark_recipe()
    recipe["trainer"] = {**recipe["trainer"], "backend": "another", "compute_dtype": "float8"}
    facts = facts_of(benchmark_story(recipe=recipe))
    with pytest.raises(NotLoggable) as refused:
        derive(type(facts)(facts.run, facts.events, facts.tasks, None), SUBMISSION)
    assert "say it in [mlperf] of the submission file" in str(refused.value)
    for key in ("tensor_parallelism: Of the trainer: a whole number from 1", "micro_batch_size", "precision_in_attn"):
        assert key in str(refused.value)


def test_what_the_ledger_lacks_is_taken_as_declared() -> None:
    recipe = benchmark_recipe()
    recipe["trainer"] = {**recipe["trainer"], "backend": "another"}
    sizes = {"tensor_parallelism": 4, "pipeline_parallelism": 2, "context_parallelism": 1, "expert_parallelism": 32}
    found = lines(benchmark_story(recipe=recipe), SUBMISSION.model_copy(update=sizes))
    assert {key: values(found)[key] for key in sizes} == sizes
    assert next(line for line in found if line.key == "tensor_parallelism").metadata == {
        "declared": "tensor_parallelism"
    }


def test_a_trainer_that_cuts_the_model_says_how() -> None:
    recipe = benchmark_recipe()
    cut = {"backend": "megatron", "ranks": 1, "tensor_parallel": 4, "data_parallel": 3, "expert_parallel": 2}
    recipe["trainer"] = {**recipe["trainer"], **cut}
    said = values(lines(benchmark_story(recipe=recipe)))
    kinds = ("tensor", "pipeline", "context", "expert")
    assert [said[f"{kind}_parallelism"] for kind in kinds] == [4, 1, 1, 2]
    assert said["gradient_accumulation_steps"] == 1, "3 micro-batches among 3 copies"


def test_what_contradicts_the_ledger_is_refused() -> None:
    with pytest.raises(NotLoggable, match=r"micro_batch_size = 1 in the submission file, but the ledger says 3"):
        lines(submission=SUBMISSION.model_copy(update={"micro_batch_size": 1}))


def test_a_step_without_metrics_has_no_statistics() -> None:
    story = benchmark_story()
    bare = [
        (envelope, event.model_copy(update={"metrics": {}}) if isinstance(event, StepTrained) else event)
        for envelope, event in story.told
    ]
    story.told = bare
    assert all("policy_training_time" not in (line.value or {}) for line in lines(story) if line.key == "tracked_stats")
