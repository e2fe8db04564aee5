"""The prompt groups of a step: started, waited for, replaced where they failed."""

from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

from stepwell.contracts.rollout import GroupInput
from stepwell.contracts.run import Dispatch, DispatchRequest, PromptRef, RunInput, StepRef
from workflows import contracts as activity
from workflows.ids import group_id, run_id
from workflows.operator_desk import DEPTH, OperatorDesk
from workflows.prompt_group import PromptGroup
from workflows.run_state import RunState
from workflows.steering import Steering

RECONCILE = timedelta(seconds=30)
RECONCILE_AT_MOST = timedelta(minutes=10)
"""How long the word of a group is waited for before the ledger is asked for it: longer each time, since each look is a
few events of the history."""
START_AGAIN = timedelta(minutes=4)
"""From this wait on, groups that are not closed are started again, should somebody have ended their workflows."""


class Groups:
    """Rolls out steps."""

    def __init__(self, run: RunInput, state: RunState, desk: OperatorDesk, steering: Steering) -> None:
        self._run = run.run
        self._plan = run.plan
        self._state = state
        self._desk = desk
        self._steering = steering

    async def roll_out(self, request: DispatchRequest) -> bool:
        """Starts the step's groups and waits until each prompt has its fate; False if the step is not to be admitted.

        Prompts that failed are replaced while the reserve lasts. A step with too few prompts left asks an operator.
        """
        step = StepRef(run=self._run, step=request.step)
        while True:
            await self._run_open(request)
            if self._desk.fold.stop == "now":
                return False
            replacements = await activity.REPLACE_PROMPTS(step)
            if not replacements.added:
                break
        if replacements.trained >= self._plan.min_prompts:
            return True
        return await self._steering.ask(
            f"smaller/{request.step}",
            f"step {request.step} has {replacements.trained} prompts to train, failures.min_prompts is "
            f"{self._plan.min_prompts}; {'; '.join(replacements.failed[:3])}",
        )

    async def _run_open(self, request: DispatchRequest) -> None:
        """Runs the groups that are open, some at a time if the recipe says so."""
        state, desk = self._state, self._desk
        dispatch = await activity.DISPATCH_STEP(request)
        state.open(request.step, dispatch)
        at_once = int(request.settings.get("run.groups_in_flight", self._plan.groups_in_flight))
        started: set[int] = set()
        for prompt in dispatch.open:
            while at_once and len(started & state.open_prompts) >= at_once and desk.fold.stop != "now":
                await self._word(request, dispatch, started, lambda: len(started & state.open_prompts) < at_once)
            if desk.depth >= DEPTH["drain"]:
                await self._steering.gate(f"prompt {prompt.prompt} of step {request.step}", DEPTH["step"])
            started.add(prompt.prompt)
            await self._start(request, prompt)
        while state.open_prompts:
            await self._word(request, dispatch, started, lambda: not state.open_prompts)

    async def _word(
        self, request: DispatchRequest, dispatch: Dispatch, started: set[int], enough: Callable[[], bool]
    ) -> None:
        """Waits until groups have told enough, or the ledger has."""
        state, patience = self._state, RECONCILE
        while not enough():
            state.wait("rollouts")
            self._steering.show()
            try:
                await workflow.wait_condition(lambda: enough() or self._desk.fold.stop == "now", timeout=patience)
            except TimeoutError:
                found = await activity.DISPATCH_STEP(request)
                state.open(request.step, found)
                if patience >= START_AGAIN:
                    for prompt in found.open:
                        if prompt.prompt in started:
                            await self._start(request, prompt)
                patience = min(2 * patience, RECONCILE_AT_MOST)
            if self._desk.fold.stop == "now" and not enough():
                await self._skip_unstarted(request, dispatch, started)

    async def _skip_unstarted(self, request: DispatchRequest, dispatch: Dispatch, started: set[int]) -> None:
        """A stop at once: what was dispatched gets its fate too."""
        for prompt in dispatch.open:
            if prompt.prompt not in started:
                started.add(prompt.prompt)
                await self._start(request, prompt)
        await workflow.wait_condition(lambda: not self._state.open_prompts)

    async def _start(self, request: DispatchRequest, prompt: PromptRef) -> None:
        """Groups outlive this workflow's runs; one that is there already goes on."""
        plan, settings, desk = self._plan, request.settings, self._desk
        skipped = desk.skipped(request.step).get(prompt.prompt, "")
        if desk.fold.stop == "now":
            skipped = skipped or f"the run was stopped: {desk.fold.stop_reason}"
        try:
            await workflow.start_child_workflow(
                PromptGroup.run,
                GroupInput(
                    run=self._run,
                    scope=str(request.step),
                    purpose="train",
                    version=request.version,
                    prompts=(prompt,),
                    samples=plan.samples,
                    rollout_timeout_s=settings.get("failures.rollout_timeout_s", plan.rollout_timeout_s),
                    rollout_attempts=plan.rollout_attempts,
                    timeout_s=settings.get("failures.group_timeout_s", plan.group_timeout_s),
                    skipped=skipped,
                    notify=run_id(self._run),
                ),
                id=group_id(self._run, str(request.step), prompt.prompt),
                parent_close_policy=ParentClosePolicy.ABANDON,
            )
        except WorkflowAlreadyStartedError:
            workflow.logger.info("group %s/%d goes on", request.step, prompt.prompt)
