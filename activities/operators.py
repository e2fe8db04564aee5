"""Activity of the control worker that records what an operator asked, and who it was."""

from typing import Literal, cast

from temporalio import activity
from temporalio.client import Client

from activities.stores import Stores
from stepwell.contracts.run import OperatorRequest, RunRef
from stepwell.events import OperatorActed
from stepwell.events.streams import operator_stream


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
                action=cast(Literal["pause", "resume", "stop"], request.action),
                who=who,
                reason=request.reason,
                update=request.update,
            ),
        )
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
