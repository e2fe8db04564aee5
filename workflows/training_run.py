"""TrainingRun: the whole loop. Two coroutines, one that generates and validates, one that trains.

Step `s` is generated wholly by version `max(0, s - max_staleness)`, so which version made which token depends on no
timing: the generator loads a version only when every group of the steps before is closed, and meanwhile the trainer
works on what was admitted. The workflow holds no fact: it starts by folding the ledger, and continues as new at a
step's boundary, when no group is open.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError

from stepwell.contracts.operators import HoldRequest, OperatorNote, SkipNote, StopNote
from stepwell.contracts.rollout import GroupsClosed
from stepwell.contracts.run import FinishRequest, Progress, RunInput, RunRef, WatchReport, WatchRequest
from stepwell.events.operator_acted import Action
from stepwell.events.run_finished import RunEnd
from workflows import contracts as activity
from workflows.generation import Generation
from workflows.ids import group_id, validation_id
from workflows.operated import Operated
from workflows.operator_desk import DEPTH
from workflows.run_state import RunState
from workflows.training import Training


@workflow.defn
class TrainingRun(Operated):
    """One run, from version 0 to its end."""

    @workflow.init
    def __init__(self, run: RunInput) -> None:
        super().__init__(run.run, RunState(run))
        self._plan = run.plan
        self._limits_moved = False
        self._generation = Generation(run, self._state, self._desk, self)
        self._training = Training(run, self._state, self._desk, self)

    @workflow.run
    async def run(self, run: RunInput) -> RunEnd:
        """Goes on from where the ledger says; returns how the run ended."""
        fold = await activity.FOLD_RUN(RunRef(run=self._run))
        self._state.take(fold)
        self._desk.take(fold.operators)
        if fold.finished is not None:
            return fold.finished
        if fold.operators.stop is not None:
            self._state.finish(RunEnd.STOPPED, fold.operators.stop_reason)
        watching = asyncio.create_task(self._watch())
        try:
            await self._both(self._generation.run(fold), self._training.run(fold, self._generation))
        except (ActivityError, ChildWorkflowError) as error:
            await self._finish(RunEnd.FAILED, _cause(error))
            raise ApplicationError(f"run {self._run} failed: {_cause(error)}", non_retryable=True) from error
        finally:
            watching.cancel()
        if self._state.end is None:
            await workflow.wait_condition(workflow.all_handlers_finished)
            workflow.continue_as_new(run)
        await self._finish(self._state.end, self._state.end_cause)
        return self._state.end

    async def gate(self, before: str, deeper_than: int, lane: str = "generation") -> None:
        """Holds while a pause is in force that is deeper than this (see `DEPTH`)."""
        if self._desk.depth > deeper_than:
            self._state.wait(f"an operator's resume (before {before})", lane)
            self.show()
            await workflow.wait_condition(lambda: self._desk.depth <= deeper_than)
        self._state.wait(before, lane)
        self.show()

    async def ask(self, gate: str, cause: str, lane: str = "generation") -> bool:
        """Waits for an operator's answer to a gate, unless it was given; a rejection ends the run."""
        state, desk = self._state, self._desk
        if gate not in desk.fold.answers:
            await self.hold(gate, cause)
            state.wait(f"an operator's answer to {gate}", lane)
            self.show()
            await workflow.wait_condition(lambda: gate in desk.fold.answers or state.end is not None)
        answer = desk.fold.answers.get(gate)
        if answer is not None and not answer.approved:
            state.finish(RunEnd.STOPPED, f"{gate} was rejected: {answer.reason}")
        return answer is not None and answer.approved

    async def hold(self, name: str, cause: str) -> None:
        """Records that the run waits for an operator, once."""
        if all(hold.hold != name for hold in self._desk.fold.holds):
            await activity.RAISE_HOLD(HoldRequest(run=self._run, hold=name, cause=cause))
            self._desk.hold(name, cause)
            self._state.last_event = f"{name} asks for an operator"
            self.show()

    def show(self) -> None:
        """Writes what the Temporal UI shows of the run."""
        self._state.show(self._desk.fold)

    async def _watch(self) -> None:
        """Keeps asking the watcher: for stalls, for what was used, for limits that were reached."""
        state, desk = self._state, self._desk
        while True:
            self._limits_moved = False
            held = tuple(hold.hold.removeprefix("limit/") for hold in desk.fold.holds if "limit/" in hold.hold)
            limits = {**self._plan.limits, **desk.fold.limits}
            request = WatchRequest(run=self._run, known=state.stalls, limits=limits, held=held)
            asked = asyncio.create_task(_asked(request))
            await workflow.wait_condition(lambda asked=asked: asked.done() or self._limits_moved)
            asked.cancel()
            report = await asked
            if report is None:
                continue  # asked anew, with the limits that hold now
            state.stalls, state.usage = report.stalls, report.usage
            if report.reached is not None:
                await self.hold(f"limit/{report.reached}", report.cause)
            self.show()

    async def _both(self, generate: Coroutine[Any, Any, None], train: Coroutine[Any, Any, None]) -> None:
        """Runs both to the end; the failure of one cancels the other and is raised."""
        tasks = [asyncio.create_task(generate), asyncio.create_task(train)]
        done, pending = await workflow.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for task in done:
            task.result()

    async def _finish(self, end: RunEnd, cause: str) -> None:
        await activity.FINISH_RUN(FinishRequest(run=self._run, end=end, version=self._state.newest, cause=cause))
        self._state.finish(end, cause)
        self._state.over = True
        self.show()
        await workflow.wait_condition(workflow.all_handlers_finished)

    @workflow.signal
    def groups_closed(self, closed: GroupsClosed) -> None:
        """A prompt group tells that it is closed."""
        self._state.closed(closed)
        self.show()

    @workflow.query
    def progress(self) -> Progress:
        """What the run does now."""
        return self._state.progress(self._desk.fold)

    async def _acted(self, action: Action, note: OperatorNote) -> None:
        """Tells open groups what concerns them, and the watcher."""
        state = self._state
        state.last_event = f"an operator asked for {action}: {note.reason or 'no reason given'}"
        if isinstance(note, StopNote):
            state.finish(RunEnd.STOPPED, note.reason)
        if isinstance(note, StopNote) and note.at == "now":
            await self._tell(self._open_work(), "skip", f"the run was stopped: {note.reason}")
        elif isinstance(note, SkipNote):
            if state.scope == str(note.step) and note.prompt in state.open_prompts:
                await self._tell([group_id(self._run, state.scope, note.prompt)], "skip", note.reason)
        elif self._desk.depth < DEPTH["drain"] and action in ("resume", "limit", "stop"):
            await self._tell(self._open_work(), "resume")
        self._limits_moved |= action == "limit"
        self.show()

    def _open_work(self) -> list[str]:
        """Workflows whose rollouts a pause holds."""
        state = self._state
        names = [group_id(self._run, state.scope, prompt) for prompt in sorted(state.open_prompts)]
        return names + ([validation_id(self._run, state.open_validation)] if state.open_validation else [])

    async def _tell(self, names: list[str], signal: str, reason: str | None = None) -> None:
        """Signals workflows; one that is over needs no word."""
        arguments = [] if reason is None else [OperatorNote(reason=reason)]
        for name in names:
            try:
                await workflow.get_external_workflow_handle(name).signal(signal, args=arguments)
            except ApplicationError as error:
                workflow.logger.info("%s is over: %s", name, error)


async def _asked(request: WatchRequest) -> WatchReport | None:
    """What the watcher tells; None if it was called off, or could not tell."""
    try:
        return await activity.WATCH_RUN(request)
    except (ActivityError, asyncio.CancelledError) as error:
        workflow.logger.info("the watcher gave no report: %s", error)
        return None


def _cause(error: ActivityError | ChildWorkflowError) -> str:
    what = error.activity_type if isinstance(error, ActivityError) else error.workflow_type
    return f"{what}: {error.cause or error}"[:500]
