"""PayloadDeleted."""

from typing import Literal

from stepwell.events.base import Event


class PayloadDeleted(Event):
    """The bytes of a blob are gone for good, and whoever names its digest still commits to them. Only event of
    `deleted/<digest>`, which all runs that name the blob share."""

    type: Literal["PayloadDeleted"] = "PayloadDeleted"
    KIND = "operational"
    MEASURED = frozenset({"reason", "size_bytes", "who"})

    digest: str
    """SHA-256 of the bytes."""
    size_bytes: int
    """How many they were."""
    reason: str
    """Why."""
    who: str
    """Account and machine by which they were deleted, as the command saw them."""

    def key(self) -> str:
        return "deleted"
