"""RunSet: all trials of a run set, some at a time."""

from collections import deque
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

from stepwell.contracts.trial import RunSetEnd, RunSetInput, RunSetRef, TrialInput, TrialOver
from workflows import contracts as activity
from workflows.ids import run_set_id, trial_id
from workflows.trial import Trial

RECONCILE = timedelta(seconds=60)
RECONCILE_AT_MOST = timedelta(minutes=30)
"""How long the word of a trial is waited for before the ledger is asked for it: longer each time, since each look is a
few events of the history. A trial whose workflow somebody ended is started again then."""


@workflow.defn
class RunSet:
    """Starts the trials that have no record, a few at once, until none is left.

    Trials outlive this workflow's runs, and tell it when they are over. One that was abandoned is left as it is: the
    set is not finished then, and the same command goes on with it.
    """

    @workflow.init
    def __init__(self, request: RunSetInput) -> None:
        self._run_set = request.run_set
        self._plan = request.plan
        self._running: set[str] = set()
        self._abandoned: list[str] = list(request.abandoned)
        self._over = 0
        """Trials that were over in this run of the workflow."""

    @workflow.run
    async def run(self, request: RunSetInput) -> RunSetEnd:
        """Returns what has a record and what has none."""
        ref = RunSetRef(run_set=request.run_set)
        standing = await activity.FOLD_RUN_SET(ref)
        first = [cell for cell in request.running if cell in standing.open]
        rest = [cell for cell in standing.open if cell not in first and cell not in self._abandoned]
        waiting = deque([*first, *rest])
        while waiting or self._running:
            while waiting and len(self._running) < self._plan.concurrency:
                await self._start(waiting.popleft())
            most = self._plan.concurrency - 1 if waiting else 0
            await self._until_running(most, ref)
            if waiting and self._over >= self._plan.trials_per_history:
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(
                    request.model_copy(
                        update={"abandoned": tuple(self._abandoned), "running": tuple(sorted(self._running))}
                    )
                )
        standing = await activity.FOLD_RUN_SET(ref)
        if not standing.open and not standing.finished:
            await activity.FINISH_RUN_SET(ref)
        return RunSetEnd(scored=standing.scored, abandoned=standing.open)

    @workflow.signal
    def trial_over(self, over: TrialOver) -> None:
        """A trial tells."""
        self._ended(over.cell, scored=over.scored)

    def _ended(self, cell: str, *, scored: bool) -> None:
        if cell in self._running:
            self._running.discard(cell)
            self._over += 1
            if not scored:
                self._abandoned.append(cell)

    async def _until_running(self, most: int, ref: RunSetRef) -> None:
        """Waits until no more trials are under way: until they have told that they are over, or the ledger has."""
        patience = RECONCILE
        while len(self._running) > most:
            try:
                await workflow.wait_condition(lambda: len(self._running) <= most, timeout=patience)
            except TimeoutError:
                standing = await activity.FOLD_RUN_SET(ref)
                for cell in sorted(self._running):
                    if cell not in standing.open:
                        self._ended(cell, scored=True)
                    else:
                        await self._start(cell)
                patience = min(2 * patience, RECONCILE_AT_MOST)

    async def _start(self, cell: str) -> None:
        """One that is there already goes on."""
        self._running.add(cell)
        try:
            await workflow.start_child_workflow(
                Trial.run,
                TrialInput(run_set=self._run_set, cell=cell, plan=self._plan.trial, notify=run_set_id(self._run_set)),
                id=trial_id(self._run_set, cell),
                parent_close_policy=ParentClosePolicy.ABANDON,
            )
        except WorkflowAlreadyStartedError:
            workflow.logger.info("trial %s goes on", cell)
