"""Histories of workflows that closed, as they lie in the store: Temporal's JSON, gzipped."""

import gzip
import zlib

from temporalio.client import WorkflowExecution, WorkflowExecutionStatus, WorkflowHistory

from db.blobs import blob_digest
from stepwell.events import HistoryArchived
from stepwell.events.history_archived import Status

_STATUS: dict[WorkflowExecutionStatus | None, Status] = {
    WorkflowExecutionStatus.COMPLETED: "completed",
    WorkflowExecutionStatus.FAILED: "failed",
    WorkflowExecutionStatus.CANCELED: "canceled",
    WorkflowExecutionStatus.TERMINATED: "terminated",
    WorkflowExecutionStatus.CONTINUED_AS_NEW: "continued_as_new",
    WorkflowExecutionStatus.TIMED_OUT: "timed_out",
}


class UnreadableHistory(ValueError):
    """A stored history that cannot be read, or is not the one that its event names."""


def pack(history: WorkflowHistory) -> bytes:
    """Stored form; the same for the same history, whenever it is packed."""
    return gzip.compress(history.to_json().encode(), mtime=0)


def unpack(archived: HistoryArchived, blob: bytes) -> WorkflowHistory:
    """The history of a stored blob.

    Raises:
        UnreadableHistory: it is damaged, or another one.
    """
    try:
        history = WorkflowHistory.from_json(archived.workflow, gzip.decompress(blob).decode())
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise UnreadableHistory(f"blob {archived.history} is no history: {error}") from error
    if len(history.events) != archived.events:
        raise UnreadableHistory(
            f"blob {archived.history} has {len(history.events)} events, {archived.events} were archived"
        )
    return history


def archived_event(execution: WorkflowExecution, history: WorkflowHistory, blob: bytes) -> HistoryArchived:
    """The event that names a history that was packed.

    Raises:
        ValueError: the workflow has not closed.
    """
    status = _STATUS.get(execution.status)
    if status is None or execution.close_time is None:
        raise ValueError(f"workflow {execution.id} is {execution.status}: only a closed one has a whole history")
    return HistoryArchived(
        workflow=execution.id,
        execution=execution.run_id,
        kind=execution.workflow_type,
        status=status,
        closed_at=execution.close_time.isoformat(),
        events=len(history.events),
        history=blob_digest(blob),
    )
