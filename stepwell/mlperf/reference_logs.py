"""The benchmark's published logs as ledgers of ours.

A published log becomes real events, sealed and chained, at the times that it says; what it does not say stays empty and
is never made up: no digests, no engines, no rollouts, no metrics of a last step that it does not print. Two fields
cannot be empty, and no line is made of either: `ValidationRecorded.pass_1` is the least that pass@k allows, pass@k / k,
and a step of which nothing is printed has no metrics and a duration of 0.

Two things come from beside the logs: the reference trains and generates in bfloat16 ("BF16" in its convergence points),
and its runs have no files of their own, so a recipe is made of what the log says.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from stepwell.events import (
    RunCreated,
    RunFinished,
    StepAdmitted,
    StepDispatched,
    StepTrained,
    ValidationOpened,
    ValidationRecorded,
    VersionCreated,
)
from stepwell.events.base import Event
from stepwell.events.canonical import digest_of_json
from stepwell.events.children import Commitment
from stepwell.events.envelope import GENESIS, Envelope, seal
from stepwell.events.numbers import WeightDigests
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import run_stream, validation_stream, weights_stream
from stepwell.mlperf import DECIDING
from stepwell.mlperf.deriving import METRICS, RunFacts
from stepwell.mlperf.published_log import NoReferenceLog, PublishedLog
from stepwell.mlperf.submission import Submission
from stepwell.tasks.manifest import TaskEntry, TaskManifest

TODAY_EVAL_SAMPLES = 251
"""Validation tasks by today's rules; the published runs of July 2026 had 256."""
_NO_DIGESTS = WeightDigests(master="", exported="", optimiser="")
_NO_CHILDREN = Commitment(count=0, heads="", facts="")
_TOLD = {ours_by: ours for ours, ours_by in METRICS.items()}
_NOT_METRICS = ("reward", "global_valid_seqs")
_TIMES = ("train_step_time", "exposed_generation_time", "weight_sync_time")


@dataclass(frozen=True)
class Imported:
    """A published log, as if it had been a run of ours."""

    facts: RunFacts
    """Its ledger."""
    submission: Submission
    """What it declares."""


def import_log(text: str, run: str, *, eval_samples: int | None = None) -> Imported:
    """A published log's ledger.

    Args:
        text: The log.
        run: Name for the run.
        eval_samples: Validation tasks, instead of those that the log says.

    Raises:
        NoReferenceLog: it lacks a key.
    """
    log = PublishedLog(text)
    tasks = _tasks(log, eval_samples or log.setting("eval_samples"))
    return Imported(
        facts=RunFacts(run=run, events=_Scribe(log, run, tasks).write(), tasks=tasks, first_batch=None),
        submission=_submission(log),
    )


def _tasks(log: PublishedLog, eval_samples: int) -> TaskManifest:
    """As many tasks as the log says, without their contents."""
    train = log.setting("train_samples") // log.setting("num_generations_per_prompt")
    entries = {
        split: tuple(
            TaskEntry(id=name, blob=hashlib.sha256(name.encode()).hexdigest())
            for name in (f"{split}-{n}" for n in range(count))
        )
        for split, count in (("train", train), (DECIDING, eval_samples))
    }
    return TaskManifest(train=entries["train"], main=entries[DECIDING], confirm=(), heldout=())


def _recipe(log: PublishedLog, samples: int) -> dict[str, Any]:
    """What the log says of the settings, under our keys."""
    say = log.setting
    return {
        "name": "reference",
        "run": {
            "seed": say("seed"),
            "max_steps": say("max_steps"),
            "prompts_per_step": say("num_prompts_per_step"),
            "samples_per_prompt": say("num_generations_per_prompt"),
        },
        "agent": {"max_context_tokens": say("max_sequence_length")},
        "sampling": {
            "temperature": say("generation_training_rollout_temperature"),
            "top_p": say("generation_training_rollout_top_p"),
        },
        "rl": {
            "importance": say("truncated_importance_sampling_type").replace("-", "_"),
            "importance_min": say("truncated_importance_sampling_ratio_min"),
            "importance_max": say("truncated_importance_sampling_ratio"),
        },
        "optimiser": {
            "learning_rate": say("opt_base_learning_rate"),
            "warmup_steps": say("opt_learning_rate_warmup_steps"),
            "decay": say("opt_learning_rate_decay_schedule"),
            "beta1": say("opt_adamw_beta_1"),
            "beta2": say("opt_adamw_beta_2"),
            "epsilon": say("opt_adamw_epsilon"),
            "weight_decay": say("opt_adamw_weight_decay"),
            "max_grad_norm": say("opt_gradient_clip_norm"),
        },
        "trainer": {"backend": "megatron", "compute_dtype": "bfloat16"},
        "engine": {
            "kind": say("generation_backend"),
            "dtype": "bfloat16",
            "tensor_parallel": say("generation_tensor_parallelism"),
        },
        "validation": {
            "tasks": samples,
            "samples": 4,
            "temperature": say("generation_validation_rollout_temperature"),
            "top_p": say("generation_validation_rollout_top_p"),
            "target": say("target_accuracy"),
        },
    }


def _submission(log: PublishedLog) -> Submission:
    keys = [
        *("submission_org", "submission_platform", "submission_division", "submission_status", "cache_clear"),
        *(f"{kind}_parallelism" for kind in ("tensor", "pipeline", "context", "expert")),
        *("micro_batch_size", "gradient_accumulation_steps"),
    ]
    declared = {key: log.setting(key) for key in keys}
    return Submission.model_validate(declared | {"lowest_numerical_precision_in_comm": "bfloat16"})


class _Scribe:
    """Tells a log as events."""

    def __init__(self, log: PublishedLog, run: str, tasks: TaskManifest) -> None:
        self._log, self._run, self._tasks = log, run, tasks
        self._told: list[tuple[Envelope, Event]] = []
        self._heads: dict[str, tuple[int, str]] = {}
        self._batch: int = log.setting("global_batch_size")

    def write(self) -> list[tuple[Envelope, Event]]:
        """All of it. Raises NoReferenceLog: a line is missing."""
        log, run, weights = self._log, run_stream(self._run), weights_stream(self._run)
        recipe = _recipe(log, len(self._tasks.main))
        created = RunCreated(
            recipe=recipe, recipe_digest=digest_of_json(recipe), task_set=hashlib.sha256(self._tasks.blob()).hexdigest()
        )
        began, ready = log.first("init_start"), log.first("init_stop")
        self._tell(began, run, created)
        self._tell(ready, weights, _version_0((ready["time_ms"] - began["time_ms"]) / 1000))
        prompts = self._tasks.train[: log.setting("num_prompts_per_step")]
        dispatched = StepDispatched(step=0, version=0, tasks=[entry.blob for entry in prompts], settings={})
        self._tell(log.first("run_start"), run, dispatched)
        for version, line, numbers in self._versions():
            if "reward" in numbers:
                self._tell(line, run, self._admitted(version - 1, numbers))
            self._tell(line, weights, _trained(version, numbers))
        opened, scored = log.every("eval_start"), log.every("eval_accuracy")
        if len(opened) != len(scored):
            raise NoReferenceLog(
                f"the log begins {len(opened)} evaluation(s) and has the accuracy of {len(scored)}: it breaks off in "
                "one, or is another benchmark's"
            )
        for opening, accuracy in zip(opened, scored, strict=True):
            self._validated(opening, accuracy)
        stop = log.first("run_stop")
        is_success = stop["metadata"]["status"] == "success"
        last = stop["metadata"]["samples_count"] // self._batch
        self._tell(stop, run, RunFinished(end=RunEnd.TARGET if is_success else RunEnd.STOPPED, version=last))
        return self._told

    def _versions(self) -> Iterator[tuple[int, Mapping[str, Any], dict[str, float]]]:
        """Each version that the log shows, the line with its time, and what it says of the step."""
        numbers: dict[int, dict[str, float]] = {}
        lines: dict[int, Mapping[str, Any]] = {}
        for line in [*self._log.every("tracked_stats"), *self._log.every("block_stop")]:
            metadata = line["metadata"]
            if "samples_count" not in metadata:
                continue  # of an evaluation
            version = metadata["samples_count"] // self._batch
            lines.setdefault(version, line)
            numbers.setdefault(version, {}).update(line["value"] or {})
        for version in sorted(lines):
            yield version, lines[version], numbers[version]

    def _admitted(self, step: int, numbers: Mapping[str, float]) -> StepAdmitted:
        masked = self._batch - int(numbers["global_valid_seqs"])
        return StepAdmitted(
            step=step,
            manifest="",
            group_facts="",
            group_heads=_NO_CHILDREN,
            rollouts=self._batch,
            masked=masked,
            reward_mean=numbers["reward"],
        )

    def _validated(self, opened: Mapping[str, Any], accuracy: Mapping[str, Any]) -> None:
        version, score, k = accuracy["metadata"]["samples_count"] // self._batch, accuracy["value"], 4
        tasks = [entry.blob for entry in self._tasks.main]
        opening = ValidationOpened(version=version, weights_digest="", dataset=DECIDING, tasks=tasks, samples=k)
        self._tell(opened, validation_stream(self._run, version, DECIDING), opening)
        recorded = ValidationRecorded(
            version=version,
            dataset=DECIDING,
            pass_1=score / k,
            pass_k=score,
            k=k,
            stream_head="",
            validation_facts="",
        )
        self._tell(accuracy, run_stream(self._run), recorded)

    def _tell(self, line: Mapping[str, Any], stream: str, event: Event) -> None:
        seq, prev = self._heads.get(stream, (0, GENESIS))
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=line["time_ms"])
        envelope = seal(
            stream=stream,
            seq=seq,
            key=event.key(),
            type=event.type,
            schema=event.SCHEMA,
            actor="trainer:reference" if stream.startswith("weights/") else "control:reference",
            body=event.body(),
            prev_hash=prev,
            time=time.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        )
        self._heads[stream] = (seq + 1, envelope.hash)
        self._told.append((envelope, event))


def _version_0(duration_s: float) -> VersionCreated:
    return VersionCreated(
        origin="the benchmark's checkpoint",
        digests=_NO_DIGESTS,
        export="",
        probe_ids=[],
        probe=[],
        metrics={},
        environment={},
        duration_s=duration_s,
    )


def _trained(version: int, numbers: Mapping[str, float]) -> StepTrained:
    """A step, with the metrics under our names; none where the log prints none."""
    times = {name: numbers[name] for name in _TIMES if name in numbers}
    duration = numbers.get("policy_training_time", 0.0)
    apart = {*_NOT_METRICS, *_TIMES, "policy_training_time"}
    return StepTrained(
        step=version - 1,
        parent=version - 1,
        version=version,
        manifest="",
        digests=_NO_DIGESTS,
        export="",
        probe=[],
        metrics={_TOLD.get(name, name): float(value) for name, value in numbers.items() if name not in apart},
        timings_s=times,
        environment={},
        duration_s=duration,
    )
