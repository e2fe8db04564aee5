"""TrainingRun: the whole loop. Two coroutines, one that generates and validates, one that trains.

Step `s` is generated wholly by version `max(0, s - max_staleness)`, so which version made which token depends on no
timing: the generator loads a version only when every group of the steps before is closed, and meanwhile the trainer
works on what was admitted. The workflow holds no fact: it starts by folding the ledger, and continues as new at a
step's boundary, when no group is open.
"""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError, WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

from stepwell.contracts.rollout import GroupInput, GroupsClosed
from stepwell.contracts.run import (
    CompleteRequest,
    Dispatch,
    DispatchRequest,
    FinishRequest,
    OpenValidationRequest,
    OperatorNote,
    OperatorRequest,
    Progress,
    RunFold,
    RunInput,
    RunRef,
    StepRef,
    ValidationInput,
)
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import validation_scope
from workflows import contracts as activity
from workflows.engine_loading import load_on_all
from workflows.ids import group_id, run_id, validation_id
from workflows.prompt_group import PromptGroup
from workflows.run_state import RunState
from workflows.validation import Validation

RECONCILE = timedelta(seconds=30)
"""How often the ledger is asked for groups whose signal may have been lost."""


@workflow.defn
class TrainingRun:
    """One run, from version 0 to its end."""

    @workflow.init
    def __init__(self, run: RunInput) -> None:
        self._run = run.run
        self._plan = run.plan
        self._state = RunState(run)
        self._operators = asyncio.Lock()
        self._all_generated = False

    @workflow.run
    async def run(self, run: RunInput) -> RunEnd:
        """Goes on from where the ledger says; returns how the run ended."""
        fold = await activity.FOLD_RUN(RunRef(run=self._run))
        if fold.finished is not None:
            return fold.finished
        self._state.take(fold)
        try:
            if fold.version is None:
                await self._gate("version 0")
                self._state.version = await activity.CREATE_POLICY(
                    RunRef(run=self._run), attempt=timedelta(seconds=self._plan.warm_up_timeout_s)
                )
            last = min(self._plan.max_steps, fold.completed + self._plan.steps_per_history)
            await self._both(self._generate_all(fold, last), self._train(fold, last))
        except (ActivityError, ChildWorkflowError) as error:
            await self._finish(RunEnd.FAILED, _cause(error))
            raise ApplicationError(f"run {self._run} failed: {_cause(error)}", non_retryable=True) from error
        if self._state.end is None:
            await workflow.wait_condition(workflow.all_handlers_finished)
            workflow.continue_as_new(run)
        await self._finish(self._state.end, self._state.end_cause)
        return self._state.end

    async def _generate_all(self, fold: RunFold, last: int) -> None:
        await self._generate(fold, last)
        self._all_generated = True

    async def _generate(self, fold: RunFold, last: int) -> None:
        """Serves, validates, rolls out and admits, step by step; at the run's last step the newest versions too."""
        state, staleness = self._state, self._plan.max_staleness
        tail = staleness + 1 if last == self._plan.max_steps else 0
        for step in range(fold.admitted, last + tail):
            version = max(0, step - staleness)
            await self._until(f"weight version {version}", lambda version=version: state.newest >= version)
            await self._gate(f"step {step}")
            if state.end is not None:
                return
            await load_on_all(self._run, version, state)
            if await self._validated_to_target(version):
                state.finish(RunEnd.TARGET, "")
                return
            if step < last:
                await self._roll_out(step, version)
        if last == self._plan.max_steps:
            state.finish(RunEnd.MAX_STEPS, "")

    async def _train(self, fold: RunFold, last: int) -> None:
        """Trains what was admitted, in order, until no more will be: however the run ends, no batch is left over."""
        state = self._state
        for step in range(fold.completed, last):
            state.training = step
            await workflow.wait_condition(lambda step=step: state.admitted > step or self._all_generated)
            if state.admitted <= step:
                return
            await self._gate(f"training of step {step}")
            made = await activity.TRAIN_STEP(
                StepRef(run=self._run, step=step), attempt=timedelta(seconds=self._plan.step_timeout_s)
            )
            await activity.COMPLETE_STEP(CompleteRequest(run=self._run, step=step, made=made))
            state.version = made
            state.show()

    async def _roll_out(self, step: int, version: int) -> None:
        """Starts the step's groups, waits until each is closed, fixes the batch."""
        state = self._state
        request = DispatchRequest(run=self._run, step=step, version=version)
        dispatch = await activity.DISPATCH_STEP(request)
        state.open(step, dispatch)
        await self._start_groups(dispatch, version)
        while state.open_prompts:
            state.wait("rollouts")
            try:
                await workflow.wait_condition(lambda: not state.open_prompts, timeout=RECONCILE)
            except TimeoutError:
                dispatch = await activity.DISPATCH_STEP(request)
                state.open(step, dispatch)
                await self._start_groups(dispatch, version)
        await activity.ADMIT_STEP(StepRef(run=self._run, step=step))
        state.admitted = step + 1

    async def _start_groups(self, dispatch: Dispatch, version: int) -> None:
        """Groups outlive this workflow's runs; one that is there already goes on."""
        for prompt in dispatch.open:
            try:
                await workflow.start_child_workflow(
                    PromptGroup.run,
                    GroupInput(
                        run=self._run,
                        scope=dispatch.scope,
                        purpose="train",
                        version=version,
                        prompts=(prompt,),
                        samples=self._plan.samples,
                        rollout_timeout_s=self._plan.rollout_timeout_s,
                        rollout_attempts=self._plan.rollout_attempts,
                        notify=run_id(self._run),
                    ),
                    id=group_id(self._run, dispatch.scope, prompt.prompt),
                    parent_close_policy=ParentClosePolicy.ABANDON,
                )
            except WorkflowAlreadyStartedError:
                workflow.logger.info("group %s/%d goes on", dispatch.scope, prompt.prompt)

    async def _validated_to_target(self, version: int) -> bool:
        """Validates the version where the plan says so; True if that ends the run."""
        schedule, final = self._plan.validation, version == self._plan.max_steps
        reached = False
        if schedule.due(version) or final:
            score = await self._validate(version, "main")
            reached = schedule.target is not None and version > 0 and score > schedule.target
            if reached and schedule.confirm:
                await self._validate(
                    version, "confirm"
                )  # looked at once, after the decision: an unbiased second measure
        if reached or final or (version == 0 and schedule.initial):
            for dataset in schedule.report:
                await self._validate(version, dataset)
        return reached

    async def _validate(self, version: int, dataset: str) -> float:
        """pass@k of a version on a set; from the ledger if it stands there."""
        state = self._state
        known = state.score(version, dataset)
        if known is None:
            await self._gate(f"validation of version {version}")
            state.wait(f"validation of version {version} on {dataset}")
            request = OpenValidationRequest(run=self._run, version=version, dataset=dataset)
            known = await workflow.execute_child_workflow(
                Validation.run,
                ValidationInput(request=request, plan=self._plan),
                id=validation_id(self._run, validation_scope(version, dataset)),
            )
            state.scored(known)
        return known.pass_k

    async def _both(self, generate: Coroutine[Any, Any, None], train: Coroutine[Any, Any, None]) -> None:
        """Runs both to the end; the failure of one cancels the other and is raised."""
        tasks = [asyncio.create_task(generate), asyncio.create_task(train)]
        done, pending = await workflow.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for task in done:
            task.result()

    async def _until(self, what: str, condition: Callable[[], bool]) -> None:
        self._state.wait(what)
        await workflow.wait_condition(condition)

    async def _gate(self, before: str) -> None:
        """Holds here while the run is paused."""
        if self._state.paused:
            self._state.wait(f"an operator's resume (before {before})")
            await workflow.wait_condition(lambda: not self._state.paused)
        self._state.wait(before)

    async def _finish(self, end: RunEnd, cause: str) -> None:
        await activity.FINISH_RUN(FinishRequest(run=self._run, end=end, version=self._state.newest, cause=cause))
        self._state.close(end)
        await workflow.wait_condition(workflow.all_handlers_finished)

    @workflow.signal
    def groups_closed(self, closed: GroupsClosed) -> None:
        """A prompt group tells that it is closed."""
        self._state.closed(closed)

    @workflow.query
    def progress(self) -> Progress:
        """What the run does now."""
        return self._state.progress()

    async def _act(self, action: str, note: OperatorNote) -> None:
        info = workflow.current_update_info()
        assert info is not None
        await activity.RECORD_OPERATOR(
            OperatorRequest(run=self._run, action=action, reason=note.reason, update=info.id)
        )

    @workflow.update
    async def pause(self, note: OperatorNote) -> Progress:
        """No new step, validation or training begins until `resume`; what is under way is finished."""
        async with self._operators:
            await self._act("pause", note)
            self._state.paused = True
            self._state.show()
        return self._state.progress()

    @workflow.update
    async def resume(self, note: OperatorNote) -> Progress:
        """Ends a pause."""
        async with self._operators:
            await self._act("resume", note)
            self._state.paused = False
            self._state.show()
        return self._state.progress()

    @workflow.update
    async def stop(self, note: OperatorNote) -> Progress:
        """Ends the run at the next step's boundary; what was admitted is trained."""
        async with self._operators:
            await self._act("stop", note)
            self._state.paused = False
            self._state.finish(RunEnd.STOPPED, note.reason)
        return self._state.progress()

    @pause.validator
    def _may_pause(self, note: OperatorNote) -> None:
        self._state.refuse_if(note.reason.strip() == "", "a reason is needed: why is the run paused?")
        self._state.refuse_if(self._state.paused, "the run is paused already; `resume` ends the pause")
        self._state.refuse_if(self._state.end is not None, "the run is ending")

    @resume.validator
    def _may_resume(self, note: OperatorNote) -> None:
        self._state.refuse_if(not self._state.paused, "the run is not paused")

    @stop.validator
    def _may_stop(self, note: OperatorNote) -> None:
        self._state.refuse_if(note.reason.strip() == "", "a reason is needed: why is the run stopped?")
        self._state.refuse_if(self._state.end is not None, "the run is ending already")


def _cause(error: ActivityError | ChildWorkflowError) -> str:
    what = error.activity_type if isinstance(error, ActivityError) else error.workflow_type
    return f"{what}: {error.cause or error}"[:500]
