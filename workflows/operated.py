"""The Updates by which operators steer a run: each is checked, recorded with who sent it, then put in force."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from stepwell.contracts.operators import (
    GateNote,
    LimitNote,
    OperatorNote,
    OperatorRequest,
    PauseNote,
    SettingNote,
    SkipNote,
    StopNote,
)
from stepwell.contracts.run import Progress
from stepwell.events.operator_acted import Action
from workflows import contracts as activity
from workflows.operator_desk import OperatorDesk
from workflows.run_state import RunState


class Operated:
    """Base of a workflow that operators steer.

    A request is refused by its validator, without a trace; one that became impossible between validator and handler is
    refused by the handler, before it is recorded.
    """

    def __init__(self, run: str, state: RunState) -> None:
        self._run = run
        self._state = state
        self._desk = OperatorDesk(state)
        self._one_at_a_time = asyncio.Lock()

    async def _acted(self, action: Action, note: OperatorNote) -> None:
        """What else an accepted request asks for; the workflow's own."""

    async def _act(self, action: Action, note: OperatorNote) -> Progress:
        info = workflow.current_update_info()
        assert info is not None
        await workflow.wait_condition(lambda: self._desk.ready)
        async with self._one_at_a_time:
            try:
                self._desk.check(action, note)
            except ValueError as error:
                raise ApplicationError(str(error), type="Refused", non_retryable=True) from None
            await activity.RECORD_OPERATOR(
                OperatorRequest(
                    run=self._run,
                    action=action,
                    arguments=note.model_dump(mode="json", exclude={"reason"}),
                    reason=note.reason,
                    update=info.id,
                )
            )
            self._desk.apply(action, note)
            await self._acted(action, note)
        return self._state.progress(self._desk.fold)

    @workflow.update
    async def pause(self, note: PauseNote) -> Progress:
        """`now`: no new turn begins; `step`: no new step or validation. `resume` ends it."""
        return await self._act("pause", note)

    @pause.validator
    def _may_pause(self, note: PauseNote) -> None:
        self._desk.check("pause", note)

    @workflow.update
    async def resume(self, note: OperatorNote) -> Progress:
        """Ends a pause or a drain."""
        return await self._act("resume", note)

    @resume.validator
    def _may_resume(self, note: OperatorNote) -> None:
        self._desk.check("resume", note)

    @workflow.update
    async def drain(self, note: OperatorNote) -> Progress:
        """No new rollout begins; what runs is finished, what was admitted is trained. Then take workers away."""
        return await self._act("drain", note)

    @drain.validator
    def _may_drain(self, note: OperatorNote) -> None:
        self._desk.check("drain", note)

    @workflow.update
    async def stop(self, note: StopNote) -> Progress:
        """Ends the run: `now` skips the open prompts, `step` finishes the step, `validation` validates what it made."""
        return await self._act("stop", note)

    @stop.validator
    def _may_stop(self, note: StopNote) -> None:
        self._desk.check("stop", note)

    @workflow.update
    async def skip(self, note: SkipNote) -> Progress:
        """Takes a prompt out of its step, whether its group is open or still to come."""
        return await self._act("skip", note)

    @skip.validator
    def _may_skip(self, note: SkipNote) -> None:
        self._desk.check("skip", note)

    @workflow.update
    async def limit(self, note: LimitNote) -> Progress:
        """Moves a limit, or takes it away; a run that it held goes on."""
        return await self._act("limit", note)

    @limit.validator
    def _may_limit(self, note: LimitNote) -> None:
        self._desk.check("limit", note)

    @workflow.update
    async def approve(self, note: GateNote) -> Progress:
        """Opens a gate."""
        return await self._act("approve", note)

    @approve.validator
    def _may_approve(self, note: GateNote) -> None:
        self._desk.check("approve", note)

    @workflow.update
    async def reject(self, note: GateNote) -> Progress:
        """Keeps a gate shut: the run stops."""
        return await self._act("reject", note)

    @reject.validator
    def _may_reject(self, note: GateNote) -> None:
        self._desk.check("reject", note)

    @workflow.update(name="set")
    async def set_key(self, note: SettingNote) -> Progress:
        """Changes a key of the recipe from the next step on."""
        return await self._act("set", note)

    @set_key.validator
    def _may_set(self, note: SettingNote) -> None:
        self._desk.check("set", note)
