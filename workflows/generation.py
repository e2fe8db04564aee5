"""The coroutine of a run that serves, validates, rolls out and admits, step by step."""

from datetime import timedelta

from temporalio import workflow

from stepwell.contracts.run import (
    DispatchRequest,
    OpenValidationRequest,
    RunFold,
    RunInput,
    StepRef,
    ValidationInput,
)
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import validation_scope
from stepwell.rl.schedule import generation_version
from workflows import contracts as activity
from workflows.engine_loading import load_on_all
from workflows.groups import Groups
from workflows.ids import validation_id
from workflows.operator_desk import DEPTH, OperatorDesk
from workflows.run_state import RunState
from workflows.steering import Steering
from workflows.validation import Validation

HISTORY_EVENTS = 2_000
HISTORY_BYTES = 2 << 20
"""A history that is longer at a step's boundary ends there. A step of 64 prompts adds about 700 events, so that every
history stays under 5,000 events and 5 MB."""


class Generation:
    """Serves each version in its turn, validates those that are due, rolls out and admits each step."""

    def __init__(self, run: RunInput, state: RunState, desk: OperatorDesk, steering: Steering) -> None:
        self._run = run.run
        self._plan = run.plan
        self._state = state
        self._desk = desk
        self._steering = steering
        self._groups = Groups(run, state, desk, steering)
        self._last = run.plan.max_steps
        self._first = 0
        """First version that is the run's own to validate: the one that a fork begins with."""
        self._settings: dict[int, dict[str, float | int]] = {}
        self.over = False
        """Nothing more will be admitted in this history."""

    async def run(self, fold: RunFold) -> None:
        """Goes on from the fold until the run ends or the history is long enough."""
        try:
            await self._steps(fold)
        finally:
            self.over = True
        if self._desk.fold.stop == "validation":
            await self._validate_what_was_made()

    def settings_of(self, step: int) -> dict[str, float | int]:
        """What operators had set when a step was dispatched."""
        return self._settings.get(step, {})

    async def _steps(self, fold: RunFold) -> None:
        state, plan = self._state, self._plan
        self._first = fold.first_step
        self._settings = {each.step: each.settings for each in fold.dispatched}
        self._last = min(plan.max_steps, fold.admitted + plan.steps_per_history)
        for step in range(fold.admitted, plan.max_steps):
            if step > fold.admitted and self._history_is_long(step):
                return
            await self._may_begin(step)
            settings = self._settings.setdefault(step, dict(self._desk.fold.settings))
            version = generation_version(step, int(settings.get("run.max_staleness", plan.max_staleness)))
            if not await self._bring_to(version):
                return
            request = DispatchRequest(run=self._run, step=step, version=version, settings=settings)
            if not await self._groups.roll_out(request):
                return
            await activity.ADMIT_STEP(StepRef(run=self._run, step=step))
            state.admitted = step + 1
            state.last_event = f"step {step} was admitted"
        if plan.validation.mode == "offline":
            await self._validate_afterwards()
        elif await self._bring_to(plan.max_steps):
            state.finish(RunEnd.MAX_STEPS, "")

    def _history_is_long(self, step: int) -> bool:
        return step >= self._last or _history_is_full()

    async def _may_begin(self, step: int) -> None:
        """Waits while a pause, or the limit of steps, forbids to begin a step."""
        while True:
            limit = {**self._plan.limits, **self._desk.fold.limits}["steps"]
            reached = limit is not None and step >= limit and self._state.end is None
            if reached:
                await self._steering.hold("limit/steps", f"{step} steps were begun; the limit is {limit:g}")
            await self._steering.gate(f"step {step}", DEPTH[None])
            if not reached:
                return

    async def _bring_to(self, version: int) -> bool:
        """Serves the version, after every older one that is due was validated; False if the run ends instead."""
        state = self._state
        for older in range(self._first, version + 1):
            if not await self._published(older):
                return False
            if self._plan.validation.mode == "inline" and await self._reaches_target(older, leaving=older < version):
                state.finish(RunEnd.TARGET, "")
            if state.end is not None:
                return False
        await load_on_all(self._run, version, state, self._steering.show)
        return state.end is None

    async def _published(self, version: int) -> bool:
        """Waits until a version may be served; False if the run ends first."""
        state = self._state
        if state.published < version:
            state.wait(f"weight version {version}")
            self._steering.show()
            await workflow.wait_condition(lambda: state.published >= version or state.end is not None)
        return state.published >= version and state.end is None

    async def _reaches_target(self, version: int, *, leaving: bool) -> bool:
        """Validates the version where the plan says so; True if that ends the run.

        Args:
            version: which.
            leaving: whether the next version is about to be served. The sets that are only reported are looked at with
                version 0 then, beside the first training, and not before the first step.
        """
        schedule, final = self._plan.validation, version == self._plan.max_steps
        reached = False
        if schedule.due(version) or final:
            score = await self._validate(version, "main")
            if score is None or not await self._within_band(version, score):
                return False
            reached = schedule.target is not None and version > 0 and score > schedule.target
            if reached and schedule.confirm:
                # looked at once, after the decision: an unbiased second measure
                await self._validate(version, "confirm")
        if reached or final or (version == 0 and schedule.initial and leaving):
            for dataset in schedule.report:
                await self._validate(version, dataset)
        return reached

    async def _validate_afterwards(self) -> None:
        """The offline rule: when all is trained, each version that is due is served again and validated; the run ends
        at the lowest that is above the target, whichever came first. Where the history is long, the next goes on."""
        state, plan, schedule = self._state, self._plan, self._plan.validation
        if not await self._published(plan.max_steps):
            return
        passing: int | None = None
        for version in range(self._first, plan.max_steps + 1):
            if not schedule.due(version) and version != plan.max_steps:
                continue
            if _history_is_full():
                return
            score = await self._validate(version, "main")
            if score is None or not await self._within_band(version, score):
                return
            if passing is None and version > 0 and schedule.target is not None and score > schedule.target:
                passing = version
        if passing is not None and schedule.confirm:
            await self._validate(passing, "confirm")
        first = [0] if schedule.initial and self._first == 0 else []
        for version in [*first, plan.max_steps if passing is None else passing]:
            for dataset in schedule.report:
                await self._validate(version, dataset)
        state.finish(RunEnd.MAX_STEPS if passing is None else RunEnd.TARGET, "")

    async def _validate(self, version: int, dataset: str) -> float | None:
        """pass@k of a version on a set, from the ledger if it stands there; None if the run ends instead."""
        state = self._state
        known = state.score(version, dataset)
        if known is not None:
            return known.pass_k
        if state.end is not None and self._desk.fold.stop != "validation":
            return None
        gate = f"validation/{version}"
        if self._plan.gates.validation and not await self._steering.ask(
            gate, f"gates.validation asks for an approval before version {version} is validated"
        ):
            return None
        await self._steering.gate(f"validation of version {version} on {dataset}", DEPTH[None])
        await load_on_all(self._run, version, state, self._steering.show)
        state.wait(f"validation of version {version} on {dataset}")
        scope = validation_scope(version, dataset)
        state.validating(scope)
        self._steering.show()
        request = OpenValidationRequest(run=self._run, version=version, dataset=dataset)
        known = await workflow.execute_child_workflow(
            Validation.run,
            ValidationInput(request=request, plan=self._plan),
            id=validation_id(self._run, scope),
            execution_timeout=VALIDATION_DEADLINE,
        )
        state.validating("")
        if known is None:
            return None
        state.scored(known)
        self._steering.show()
        return known.pass_k

    async def _within_band(self, version: int, score: float) -> bool:
        """Asks an operator about a score that leaves its band; False for a rejection."""
        for band in self._plan.gates.bands:
            if band.metric == "pass_k" and not band.low <= score <= band.high:
                cause = f"pass@k of version {version} is {score:.3f}, outside of {band.low:g} to {band.high:g}"
                return await self._steering.ask(f"band/pass_k/{version}", cause)
        return True

    async def _validate_what_was_made(self) -> None:
        """The last wish of a stop `validation`: the newest version's score."""
        state = self._state
        await workflow.wait_condition(lambda: state.training_over)
        if state.published == state.newest:
            await self._validate(state.newest, "main")


def _history_is_full() -> bool:
    info = workflow.info()
    return info.get_current_history_length() > HISTORY_EVENTS or info.get_current_history_size() > HISTORY_BYTES


VALIDATION_DEADLINE = timedelta(days=7)
"""Of a whole validation, pauses included."""
