"""HistoryArchived."""

from typing import Literal

from stepwell.events.base import Event

Status = Literal["completed", "failed", "canceled", "terminated", "continued_as_new", "timed_out"]
"""How a workflow closed, in Temporal's words."""


class HistoryArchived(Event):
    """The history of a workflow that closed is in the store, before Temporal forgets it. Stream `history/<run>`."""

    type: Literal["HistoryArchived"] = "HistoryArchived"
    KIND = "operational"

    workflow: str
    """Its workflow id: the same for all executions that continue each other."""
    execution: str
    """Temporal's id of this execution."""
    kind: str
    """Type of the workflow."""
    status: Status
    """How it closed."""
    closed_at: str
    """When, UTC by Temporal's clock, ISO 8601."""
    events: int
    """Events in its history."""
    history: str
    """Blob: the history as Temporal's JSON, gzipped."""

    def key(self) -> str:
        return f"history/{self.workflow}/{self.execution}"
