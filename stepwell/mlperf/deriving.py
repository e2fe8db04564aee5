"""From a run's events to its benchmark log: one pure function of what was recorded and what the submitter declares."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar

from stepwell.events import (
    RunCreated,
    RunFinished,
    RunForked,
    StepAdmitted,
    StepDispatched,
    StepTrained,
    ValidationClosed,
    ValidationOpened,
    ValidationRecorded,
    VersionCreated,
)
from stepwell.events.base import Event
from stepwell.events.envelope import Envelope
from stepwell.events.streams import validation_stream
from stepwell.mlperf import BENCHMARK, DECIDING
from stepwell.mlperf.benchmark_log import (
    BenchmarkLog,
    Evaluation,
    NotLoggable,
    Place,
    Setting,
    Stats,
    Status,
    Step,
    Stop,
    Value,
)
from stepwell.mlperf.recipe_settings import CHANGEABLE, data_parallelism, required, settings_of, value_at
from stepwell.mlperf.submission import Submission, allowed
from stepwell.rl.batching import BatchManifest
from stepwell.rl.passk import pass_rates
from stepwell.tasks.manifest import TaskManifest

E = TypeVar("E", bound=Event)

METRICS = {"loss": "reduced_train_loss", "loss_tokens": "global_valid_toks"}
"""Names that the reference gives to our metrics; the others keep their own."""
_DIGITS = 6
"""Of an interval's ends: another processor may add up the last bits otherwise, and a log must come out the same."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RunFacts:
    """What is read of a ledger."""

    run: str
    """Name of the run."""
    events: Sequence[tuple[Envelope, Event]]
    """Streams `run/…`, `weights/…` and `validation/…`, each in order."""
    tasks: TaskManifest
    """The task set that `RunCreated` names."""
    first_batch: BatchManifest | None
    """The batch that the first `StepAdmitted` names; None where there is none."""

    def every(self, kind: type[E]) -> list[tuple[Place, E]]:
        """Events of a type, with their places."""
        return [(place_of(envelope), event) for envelope, event in self.events if isinstance(event, kind)]

    @cached_property
    def created(self) -> tuple[Place, RunCreated]:
        """The run's first event.

        Raises:
            NotLoggable: there is none.
        """
        found = self.every(RunCreated)
        if not found:
            raise NotLoggable(f"run/{self.run} has no RunCreated: it is no run's ledger")
        return found[0]

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The resolved recipe. Raises as `created`."""
        return self.created[1].recipe


def place_of(envelope: Envelope) -> Place:
    """An event's place, with its time in milliseconds."""
    since = datetime.fromisoformat(envelope.time) - _EPOCH
    return Place(envelope.stream, envelope.seq, since // timedelta(milliseconds=1))


def derive(facts: RunFacts, submission: Submission) -> BenchmarkLog:
    """The benchmark log of a run.

    Raises:
        NotLoggable: the run is a fork, has not ended, or neither it nor the submitter says what a log must.
    """
    created, _ = facts.created
    if facts.every(RunForked):
        raise NotLoggable(
            f"{facts.run} is a fork: it goes on from another run's version, a benchmark's run begins at 0"
        )
    is_offline = value_at(facts.recipe, "validation.mode", "inline") == "offline"
    evaluations = _evaluations(facts)
    stop = _stop(facts, evaluations, is_offline=is_offline)
    _refuse_changed(facts, stop.version)
    return BenchmarkLog(
        run=facts.run,
        created=created,
        began=_began(facts),
        settings=tuple(_settings(facts, submission)),
        samples_per_step=required(facts.recipe, "run.prompts_per_step")
        * required(facts.recipe, "run.samples_per_prompt"),
        steps=tuple(step for step in _steps(facts) if step.version <= stop.version),
        evaluations=tuple(each for each in evaluations if each.version <= stop.version),
        stop=stop,
        is_offline=is_offline,
    )


def _began(facts: RunFacts) -> Place:
    """The first event that touches the data: the first step's dispatch, or a validation before it."""
    touches = [place for place, event in facts.every(StepDispatched) if event.step == 0]
    touches += [place for place, _ in facts.every(ValidationOpened)]
    if not touches:
        raise NotLoggable(f"{facts.run} has dispatched no step yet: there is nothing to log")
    return min(touches, key=lambda place: place.time_ms)


def _stop(facts: RunFacts, evaluations: Iterable[Evaluation], *, is_offline: bool) -> Stop:
    """Where the lowest version passed: inline when its result was known, offline when its weights were made, which is
    not known until all versions are evaluated, in whatever order.

    Raises:
        NotLoggable: the run is under way, or the version that passed was not made by it.
    """
    target = required(facts.recipe, "validation.target")
    passed = [each for each in evaluations if each.version > 0 and each.pass_k > target]
    finished = facts.every(RunFinished)
    if is_offline and not finished:
        raise NotLoggable(
            f"{facts.run} is still under way: offline, a version that is yet to be evaluated may have passed before; "
            "log it when the run has ended"
        )
    if passed:
        first = passed[0]
        made = {event.version: place for place, event in facts.every(StepTrained)}
        if is_offline and first.version not in made:
            raise NotLoggable(f"weights/{facts.run} has no StepTrained of version {first.version}, which was validated")
        place = made[first.version] if is_offline else first.recorded
        return Stop(Status.SUCCESS, first.version, place)
    for place, event in finished:
        return Stop(Status.ABORTED, event.version, place)
    raise NotLoggable(
        f"{facts.run} is still under way: no version is above validation.target = {target}, and the run has not "
        "ended; log it when it has"
    )


def _refuse_changed(facts: RunFacts, last: int) -> None:
    for place, event in facts.every(StepDispatched):
        for key in CHANGEABLE.keys() & event.settings.keys():
            if event.step < last and event.settings[key] != value_at(facts.recipe, key):
                raise NotLoggable(
                    f"an operator set {key} to {event.settings[key]} from step {event.step} on ({place.stream} "
                    f"#{place.seq}): a log has one {CHANGEABLE[key]} for the whole run"
                )


def _settings(facts: RunFacts, submission: Submission) -> Iterable[Setting]:
    """Every setting in the log's order. Raises NotLoggable: names all that neither side says."""
    place, created = facts.created
    told = [Setting("submission_benchmark", BENCHMARK, "submission_benchmark", None)]
    declared = ("submission_org", "submission_division", "submission_status", "submission_platform")
    told += [Setting(key, getattr(submission, key), key, None) for key in declared]
    told += [Setting(key, each.value, each.said_by, place) for key, each in settings_of(facts.recipe).items()]
    told += [
        Setting(key, value, field, place)
        for key, value, field in (
            ("train_samples", _train_samples(facts), "task_set, recipe.run.samples_per_prompt"),
            ("eval_samples", len(facts.tasks.dataset(DECIDING)), "task_set"),
            ("config_filename", config_filename(created), "recipe.name, recipe_digest"),
        )
    ]
    for at, event in facts.every(VersionCreated):
        told.append(Setting("init_checkpoint_step", event.version, "version", at))
    told += _batching(facts)
    told.append(Setting("lowest_numerical_precision_in_comm", None, "", place))
    settings = [_agreed(setting, submission) for setting in told]
    missing = [each for each in settings if each.value is None and each.key in Submission.model_fields]
    if missing:
        lines = [f"  {each.key}: {allowed(each.key)}" for each in missing]
        raise NotLoggable(
            "\n".join([f"{facts.run}: its ledger does not say this; say it in [mlperf] of the submission file", *lines])
        )
    return settings


def _agreed(setting: Setting, submission: Submission) -> Setting:
    """What the ledger says, or what is declared where it says nothing.

    Raises:
        NotLoggable: they contradict each other.
    """
    declared: Value = getattr(submission, setting.key, None)
    if declared is None or setting.place is None:
        return setting
    if setting.value is None:
        return Setting(setting.key, declared, setting.key, None)
    if setting.value != declared:
        raise NotLoggable(
            f"{setting.key} = {declared!r} in the submission file, but the ledger says {setting.value!r} "
            f"({setting.said_by} of {setting.place.stream} #{setting.place.seq}); leave it out"
        )
    return setting


def _train_samples(facts: RunFacts) -> int:
    """Training tasks, each once however often the curriculum takes it, times rollouts."""
    return len({entry.blob for entry in facts.tasks.train}) * required(facts.recipe, "run.samples_per_prompt")


def _batching(facts: RunFacts) -> list[Setting]:
    """How the first step was cut into micro-batches; None where the ledger does not say it."""
    batch, admitted = facts.first_batch, facts.every(StepAdmitted)
    if batch is None or not admitted:
        place = facts.created[0]
        return [Setting(key, None, "", place) for key in ("micro_batch_size", "gradient_accumulation_steps")]
    place = admitted[0][0]
    copies = data_parallelism(facts.recipe)
    trained = [each for each in batch.micro_batches if each.train]
    largest = max((len(each.samples) for each in trained), default=1)
    return [
        Setting("micro_batch_size", largest, "manifest", place),
        Setting("gradient_accumulation_steps", max(1, -(-len(trained) // copies)), "manifest", place),
    ]


def config_filename(created: RunCreated) -> str:
    """Name of the file with the resolved recipe in a submission's folder."""
    return f"{created.recipe.get('name', 'recipe')}-{created.recipe_digest[:12]}.toml"


def _steps(facts: RunFacts) -> list[Step]:
    admitted = {event.step: (place, event) for place, event in facts.every(StepAdmitted)}
    steps: list[Step] = []
    for place, event in facts.every(StepTrained):
        stats = [_admitted(*admitted[event.step])] if event.step in admitted else []
        if event.metrics:
            numbers = {METRICS.get(name, name): value for name, value in event.metrics.items()}
            stats.append(Stats(numbers, "metrics", place))
            stats.append(Stats({"policy_training_time": event.duration_s, **event.timings_s}, "timings_s", place))
        steps.append(Step(event.version, place, tuple(stats)))
    return sorted(steps, key=lambda step: step.version)


def _admitted(place: Place, event: StepAdmitted) -> Stats:
    valid = float(event.rollouts - event.masked)
    return Stats({"reward": event.reward_mean, "global_valid_seqs": valid}, "reward_mean, rollouts, masked", place)


def _evaluations(facts: RunFacts) -> list[Evaluation]:
    """Of the deciding set, by version.

    Raises:
        NotLoggable: one has no beginning, or other tasks than the task set.
    """
    opened = {place.stream: (place, event) for place, event in facts.every(ValidationOpened)}
    closed = {place.stream: (place, event) for place, event in facts.every(ValidationClosed)}
    tasks, found = len(facts.tasks.dataset(DECIDING)), list[Evaluation]()
    for recorded, event in facts.every(ValidationRecorded):
        if event.dataset != DECIDING:
            continue
        stream = validation_stream(facts.run, event.version, event.dataset)
        if stream not in opened:
            raise NotLoggable(f"{stream} has no ValidationOpened, and run/{facts.run} #{recorded.seq} has its result")
        began, opening = opened[stream]
        if len(opening.tasks) != tasks:
            raise NotLoggable(f"{stream} has {len(opening.tasks)} tasks, the run's set {DECIDING!r} has {tasks}")
        took = Stats({"validation_time": (recorded.time_ms - began.time_ms) / 1000}, "time", recorded)
        stats = (took, *([_closed(*closed[stream])] if stream in closed else []))
        found.append(Evaluation(event.version, began, recorded, event.pass_k, stats))
    return sorted(found, key=lambda each: each.version)


def _closed(place: Place, event: ValidationClosed) -> Stats:
    """pass@k, pass@1 (the mean over samples) and pass^k (the share of tasks that all samples pass), each with its 95 %
    interval."""
    numbers = {"pass_1": event.pass_1, "pass_k": event.pass_k}
    rates = pass_rates(event.passed, event.graded)
    if rates is not None:
        numbers["pass_all_k"] = rates.pass_all.value
        for name, each in (("pass_1", rates.pass_1), ("pass_k", rates.pass_k), ("pass_all_k", rates.pass_all)):
            numbers |= {f"{name}_low": round(each.low, _DIGITS), f"{name}_high": round(each.high, _DIGITS)}
    return Stats(numbers, "passed, graded, pass_1, pass_k", place)
