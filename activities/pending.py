"""What a workflow waits for, as the Temporal server describes it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from stepwell.health.stalls import Pending

CHILDREN = 12
"""Open child workflows that are looked at, of each parent."""
_NEWEST_EVENTS = 20
_MESSAGE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Described:
    """A workflow's pending work."""

    activities: tuple[Pending, ...]
    children: tuple[str, ...] = ()
    """Ids of open child workflows."""
    task_attempt: int = 0
    """Of the workflow's own task: more than 1 if it failed."""


async def describe(client: Client, workflow: str) -> Described | None:
    """What a workflow waits for now; None if there is no such workflow, or not any more.

    Raises:
        RPCError: the server does not answer.
    """
    try:
        described = await client.get_workflow_handle(workflow).describe()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        return None
    raw, now_s = described.raw_description, time.time()
    return Described(
        tuple(_pending(info, now_s) for info in raw.pending_activities),
        tuple(child.workflow_id for child in raw.pending_children),
        raw.pending_workflow_task.attempt,
    )


async def task_failure(client: Client, workflow: str) -> str:
    """Why the workflow's own task failed the first time in a row: the server keeps no more.

    Raises:
        RPCError: the server does not answer.
    """
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=workflow),
        maximum_page_size=_NEWEST_EVENTS,
    )
    answer = await client.workflow_service.get_workflow_execution_history_reverse(request)
    for event in answer.history.events:
        if event.HasField("workflow_task_failed_event_attributes"):
            return _message(event.workflow_task_failed_event_attributes.failure)
    return "the control worker's log says why"


async def of_children(client: Client, children: Sequence[str]) -> list[Pending]:
    """Activities that open child workflows, and their children, wait for: of a few of each, which speak for the others.

    Raises:
        RPCError: the server does not answer.
    """
    found: list[Pending] = []
    grandchildren: list[str] = []
    for child in children[:CHILDREN]:
        if (described := await describe(client, child)) is not None:
            found += described.activities
            grandchildren += described.children
    for grandchild in grandchildren[:CHILDREN]:
        if (described := await describe(client, grandchild)) is not None:
            found += described.activities
    return found


def _pending(info: PendingActivityInfo, now_s: float) -> Pending:
    working = info.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    since = info.last_started_time if working else info.scheduled_time
    failed = info.HasField("last_failure")
    ended = info.last_attempt_complete_time.ToNanoseconds() / 1e9
    return Pending(
        key=f"{info.activity_id}/{info.attempt}",
        activity=info.activity_type.name,
        queue=info.activity_options.task_queue.name,
        working=working,
        attempt=info.attempt,
        since_s=max(0.0, now_s - since.ToNanoseconds() / 1e9),
        failure=_message(info.last_failure) if failed else "",
        failed_s=max(0.0, now_s - ended) if failed and ended else 0.0,
    )


def _message(failure: Failure) -> str:
    """The failure, and the cause at its root."""
    root = failure
    while root.HasField("cause"):
        root = root.cause
    kind = failure.application_failure_info.type
    words = f"{kind}: {failure.message}" if kind else failure.message
    if root is not failure and root.message:
        words += f" ({root.message})"
    return " ".join(words.split())[:_MESSAGE_CHARACTERS]
