"""Activities of the control worker on `operator/<run>`: what operators asked, and what the run asks of them."""

from temporalio import activity
from temporalio.client import Client

from activities.stores import Stores
from stepwell.contracts.operators import HoldRequest, OperatorRequest
from stepwell.contracts.run import RunRef
from stepwell.events import HoldRaised, OperatorActed
from stepwell.events.streams import operator_stream
from stepwell.operators.fold import fold_operators


class OperatorActivities:
    """Records operators' actions."""

    def __init__(self, stores: Stores, client: Client) -> None:
        self._stores = stores
        self._client = client

    @activity.defn(name="record_operator")
    async def record_operator(self, request: OperatorRequest) -> RunRef:
        """Records an accepted Update with the identity that the server noted for it, never one that it claims."""
        info = activity.info()
        assert info.workflow_id is not None
        who = await self._identity(info.workflow_id, info.workflow_run_id, request.update)
        await self._stores.append_next(
            operator_stream(request.run),
            OperatorActed(
                action=request.action,
                arguments=request.arguments,
                who=who,
                reason=request.reason,
                update=request.update,
            ),
        )
        return RunRef(run=request.run)

    @activity.defn(name="raise_hold")
    async def raise_hold(self, request: HoldRequest) -> RunRef:
        """Records that the run waits for an operator, unless it does so already."""
        stream = operator_stream(request.run)
        events = [recorded.event for recorded in await self._stores.ledger.read(stream)]
        if all(hold.hold != request.hold for hold in fold_operators(events).holds):
            before = sum(isinstance(event, HoldRaised) and event.hold == request.hold for event in events)
            await self._stores.append_next(stream, HoldRaised(hold=request.hold, number=before, cause=request.cause))
        return RunRef(run=request.run)

    async def _identity(self, workflow: str, run: str | None, update: str) -> str:
        """Identity of the client that sent an Update, out of the workflow's history.

        Raises:
            LookupError: the history does not hold the Update (yet): the activity is retried.
        """
        history = self._client.get_workflow_handle(workflow, run_id=run).fetch_history_events()
        async for event in history:
            accepted = event.workflow_execution_update_accepted_event_attributes
            if accepted.accepted_request.meta.update_id == update:
                return accepted.accepted_request.meta.identity or "unknown (the client gave no identity)"
        raise LookupError(f"update {update} is not in the history of {workflow}")
