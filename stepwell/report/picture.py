"""RunPicture: an incremental fold over the events of one run, in whatever order its streams are read.

Within a stream events come in order; an event that was seen before changes nothing, so overlapping reads are harmless.
Events of other runs, and verdicts that no rollout of this run asks for, are left out.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from stepwell.events import (
    AttemptOpened,
    EngineStarted,
    GroupClosed,
    PromptReplaced,
    RunCreated,
    RunFinished,
    StepAdmitted,
    StepDispatched,
    StepTrained,
    TurnRecorded,
    ValidationClosed,
    ValidationOpened,
    ValidationRecorded,
    VerdictReached,
    VersionAttested,
    VersionCreated,
)
from stepwell.events.base import Event
from stepwell.events.envelope import Envelope
from stepwell.report.cover import Activities, Activity, TimeSplit
from stepwell.report.examples import Examples
from stepwell.report.fates import FateCount
from stepwell.report.lengths import Comparison, Spread, compare_lengths
from stepwell.report.recovery_work import RecoveryWork, is_after_pause, pause_windows, recovery_work
from stepwell.report.rollout_lengths import RolloutLengths
from stepwell.report.rollouts import Recovery, RecoveryKind, Rollouts
from stepwell.report.standing import Standing
from stepwell.report.steps import StepPicture
from stepwell.report.validations import ValidationPicture
from stepwell.report.worker_timeline import Lane, WorkerTimeline
from stepwell.report.workers import Workers, place_of

_CADENCE = 16
"""Newest steps whose mean cadence tells the time left."""


def seconds_of(time: str) -> float:
    """An envelope's time in seconds since the epoch."""
    return datetime.fromisoformat(time).timestamp()


class RunPicture:
    """What a person wants to know of a run.

    Args:
        run: Name of the run.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.recipe: dict[str, Any] = {}
        self.recipe_digest = ""
        self.created_s: float | None = None
        self.finished: RunFinished | None = None
        self.newest_s: float | None = None
        self.version = -1
        self.served = -1
        self.warm_up: VersionCreated | None = None
        self.warmed_up_s: float | None = None
        self.head_seq = -1
        self.head_hash = ""
        self.steps: dict[int, StepPicture] = {}
        self.validations: dict[tuple[int, str], ValidationPicture] = {}
        self.training_fates = FateCount()
        self.validation_fates = FateCount()
        self.rollouts = Rollouts()
        self.workers = Workers()
        self.timeline = WorkerTimeline()
        self.activities = Activities()
        self.examples = Examples()
        self.standing = Standing()
        self._reinforcement_began_s: float | None = None
        self._finished_s: float | None = None
        self._engines = 0
        self._trainer: AttemptOpened | None = None
        self._trainer_owes = False
        self._trainer_began_s = 0.0
        self._recoveries: list[Recovery] = []
        self._lengths = RolloutLengths()
        self._next_seq: dict[str, int] = {}

    @property
    def target(self) -> float | None:
        """pass@k that ends the run, if it has one."""
        return _number(self.recipe, "validation", "target")

    @property
    def max_steps(self) -> int | None:
        """Training steps of the whole run."""
        steps = _number(self.recipe, "run", "max_steps")
        return None if steps is None else int(steps)

    @property
    def mismatch_bound(self) -> float | None:
        """Bound on a step's mean |log-probability by the trainer - by the engine|, in nats."""
        return _number(self.recipe, "run", "mismatch_bound")

    @property
    def max_staleness(self) -> int | None:
        """Most versions that may lie between a batch's generation and its training, by the recipe."""
        bound = _number(self.recipe, "run", "max_staleness")
        return None if bound is None else int(bound)

    @property
    def recipe_name(self) -> str:
        """Name of the recipe, empty before the run's first event."""
        return str(self.recipe.get("name", ""))

    @property
    def recoveries(self) -> list[Recovery]:
        """All, by time; a rollout that goes on after a pause was not lost."""
        windows = pause_windows(self.standing.acts, self.standing.raised)
        own = [recovery for recovery in self.rollouts.recoveries if not is_after_pause(recovery, windows)]
        return sorted([*self._recoveries, *own], key=lambda recovery: recovery.time_s)

    @property
    def recovery_work(self) -> RecoveryWork:
        """What the recoveries cost."""
        return recovery_work(self.rollouts, self.recoveries)

    @property
    def lengths(self) -> tuple[Comparison, ...]:
        """What was trained against what was generated, in tokens and in turns."""
        filtered = self.recipe.get("rl", {}).get("overlong_filtering", True)
        return compare_lengths(self._lengths.lengths(overlong_filtering=bool(filtered)))

    @property
    def lengths_by_step(self) -> dict[int, Spread]:
        """Tokens generated by the rollouts of each step."""
        return self._lengths.by_step()

    @property
    def events(self) -> int:
        """Events that it was made of."""
        return sum(self._next_seq.values())

    def worker_lanes(self) -> list[Lane]:
        """Rollouts under way by worker."""
        return self.timeline.lanes(self.newest_s or 0.0, self.recoveries)

    @property
    def moved_limits(self) -> frozenset[str]:
        """Names of the limits that an operator set."""
        return frozenset(self.standing.operators.limits)

    @property
    def limits(self) -> dict[str, float | None]:
        """Limits in force, by name."""
        return self.standing.limits(self.recipe)

    @property
    def done_steps(self) -> list[StepPicture]:
        """Steps that are trained, in order."""
        return [self.steps[step] for step in sorted(self.steps) if self.steps[step].done]

    def results(self, dataset: str) -> list[ValidationPicture]:
        """Validations with a result on a set, by version."""
        return [self.validations[key] for key in sorted(self.validations) if self._is_result(key, dataset)]

    @property
    def datasets(self) -> list[str]:
        """Sets with a result, `main` first."""
        names = {dataset for (version, dataset) in self.validations if self._is_result((version, dataset), dataset)}
        return sorted(names, key=lambda name: (name != "main", name))

    @property
    def reinforcement_began_s(self) -> float | None:
        """When the first step was dispatched or the first validation opened, in seconds since the epoch."""
        return self._reinforcement_began_s

    def time_split(self) -> TimeSplit | None:
        """Where the wall clock of the reinforcement part went; None before it began."""
        if self._reinforcement_began_s is None or self.newest_s is None:
            return None
        return self.activities.split(self._reinforcement_began_s, self._finished_s or self.newest_s)

    def eta_s(self) -> float | None:
        """Seconds to the recipe's last step at the cadence of the newest steps, validations included; None if that
        cannot be told. A target may end the run sooner."""
        done = [step for step in self.done_steps if step.trained_s is not None][-_CADENCE - 1 :]
        if self.max_steps is None or not done or self.finished is not None:
            return None
        left = self.max_steps - done[-1].step - 1
        first, last = done[0].trained_s, done[-1].trained_s
        assert first is not None
        assert last is not None
        if len(done) == 1:
            return None if done[0].step_s is None else left * done[0].step_s
        return left * (last - first) / (len(done) - 1)

    def see_all(self, recorded: Iterable[tuple[Envelope, Event]]) -> None:
        """Takes up several events."""
        for envelope, event in recorded:
            self.see(envelope, event)

    def see(self, envelope: Envelope, event: Event) -> None:
        """Takes up an event of this run; others, and those seen before, change nothing."""
        stream = envelope.stream
        if not self._belongs(stream) or envelope.seq < self._next_seq.get(stream, 0):
            return
        self._next_seq[stream] = envelope.seq + 1
        time_s = seconds_of(envelope.time)
        self.newest_s = time_s if self.newest_s is None else max(self.newest_s, time_s)
        self.workers.see(envelope.actor, stream, event, time_s)
        kind = stream.partition("/")[0]
        if kind == "rollout":
            self.rollouts.see(stream, event, time_s)
            self.examples.see(stream, event)
            self.timeline.see(stream, event, time_s)
            self._lengths.see(stream, event)
            if isinstance(event, TurnRecorded):
                self._turn(stream, event, time_s)
        elif kind in ("operator", "health"):
            self.standing.see(event, time_s)
        elif kind == "run":
            self.head_seq, self.head_hash = envelope.seq, envelope.hash
            self._of_run(event, time_s)
        else:
            self._of_others(stream, event, time_s)

    def _belongs(self, stream: str) -> bool:
        kind, _, rest = stream.partition("/")
        if kind == "verdict":
            return rest in self.rollouts.verdict_keys
        return rest == self.run or rest.startswith(f"{self.run}/")

    def _is_result(self, key: tuple[int, str], dataset: str) -> bool:
        return key[1] == dataset and self.validations[key].done

    def _step(self, step: int) -> StepPicture:
        return self.steps.setdefault(step, StepPicture(step))

    def _validation(self, version: int, dataset: str) -> ValidationPicture:
        return self.validations.setdefault((version, dataset), ValidationPicture(version, dataset))

    def _began(self, time_s: float) -> None:
        known = self._reinforcement_began_s
        self._reinforcement_began_s = time_s if known is None else min(known, time_s)

    def _turn(self, stream: str, event: TurnRecorded, time_s: float) -> None:
        self.activities.ended(Activity.TOOLS, time_s, event.tool_s)
        self.activities.ended(Activity.GENERATION, time_s - event.tool_s, event.generate_s)
        scope = stream.split("/")[2]
        if scope.isdigit():
            self._step(int(scope)).generated_tokens += event.generated_tokens

    def _of_run(self, event: Event, time_s: float) -> None:
        match event:
            case RunCreated():
                self.recipe, self.recipe_digest, self.created_s = event.recipe, event.recipe_digest, time_s
            case StepDispatched():
                self._began(time_s)
                step = self._step(event.step)
                step.generated_by, step.prompts, step.dispatched_s = event.version, len(event.tasks), time_s
                self.training_fates.dispatched += len(event.tasks)
            case PromptReplaced():
                self.training_fates.dispatched += 1
                self.training_fates.replaced += 1
            case StepAdmitted():
                self._step(event.step).admitted(event, time_s)
            case ValidationRecorded():
                validation = self._validation(event.version, event.dataset)
                validation.recorded_s = time_s
                validation.pass_1, validation.pass_k, validation.k = event.pass_1, event.pass_k, event.k
            case RunFinished():
                self.finished, self._finished_s = event, time_s
            case _:
                pass

    def _of_others(self, stream: str, event: Event, time_s: float) -> None:
        match event:
            case GroupClosed():
                scope = stream.split("/")[2]
                fates = self.training_fates if scope.isdigit() else self.validation_fates
                fates.close(event, place_of(stream))
                self._lengths.see(stream, event)
            case StepTrained():
                self._trainer_owes = False
                self.version = max(self.version, event.version)
                previous = self.steps.get(event.step - 1)
                self._step(event.step).trained(event, time_s, previous.trained_s if previous else None)
                self.activities.ended(Activity.TRAINING, time_s, event.duration_s)
            case VersionCreated():
                self._trainer_owes = False
                self.version, self.warm_up, self.warmed_up_s = max(self.version, 0), event, time_s
            case VersionAttested():
                self.served = event.version
                self.activities.ended(Activity.LOADING, time_s, event.load_s)
            case VerdictReached():
                self.activities.ended(Activity.GRADING, time_s, event.duration_s)
            case ValidationOpened():
                self._began(time_s)
                validation = self._validation(event.version, event.dataset)
                validation.tasks, validation.samples, validation.opened_s = len(event.tasks), event.samples, time_s
                self.validation_fates.dispatched += len(event.tasks)
            case ValidationClosed():
                version, _, dataset = stream.split("/")[2].partition("-")
                self._validation(int(version[1:]), dataset).closed(event)
            case EngineStarted():
                self._engine_started(stream, event, time_s)
            case AttemptOpened():
                self._trainer_attempt(stream, event, time_s)
            case _:
                pass

    def _engine_started(self, stream: str, event: EngineStarted, time_s: float) -> None:
        self._engines += 1
        if self._engines > (_number(self.recipe, "engines") or 1):
            self._recoveries.append(Recovery(time_s, RecoveryKind.ENGINE_RESTARTED, stream, f"on {event.worker}"))

    def _trainer_attempt(self, stream: str, event: AttemptOpened, time_s: float) -> None:
        if stream.partition("/")[0] != "weights":
            return
        if self._trainer is not None and (self._trainer_owes or self._trainer.worker != event.worker):
            lost_s = time_s - self._trainer_began_s if self._trainer_owes else None
            detail = f"by {event.worker}"
            self._recoveries.append(Recovery(time_s, RecoveryKind.TRAINER_RETAKEN, stream, detail, lost_s))
        self._trainer, self._trainer_owes, self._trainer_began_s = event, True, time_s


def _number(recipe: dict[str, Any], *path: str) -> float | None:
    """A number of a recipe; None where it is not set."""
    value: Any = recipe
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else None
