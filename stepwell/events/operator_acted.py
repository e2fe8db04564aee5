"""OperatorActed."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from stepwell.events.base import Event

Action = Literal["pause", "resume", "drain", "stop", "skip", "limit", "approve", "reject", "set"]


def _with_arguments(body: dict[str, Any]) -> dict[str, Any]:
    """Schema 1 knew three actions without arguments: pause and stop took effect at the step's end."""
    at = {} if body["action"] == "resume" else {"at": "step"}
    return {**body, "arguments": at}


class OperatorActed(Event):
    """An operator's request was accepted by the run's workflow. Stream `operator/<run>`."""

    type: Literal["OperatorActed"] = "OperatorActed"
    KIND = "operational"
    SCHEMA = 2
    UPCASTS: ClassVar[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {1: _with_arguments}

    action: Action
    """What was asked."""
    arguments: dict[str, str | int | float | bool | None]
    """With what: `at` of a pause or stop, `step` and `prompt` of a skip, `limit` and `value`, `gate`, `key` and `value`
    of a setting."""
    who: str
    """Identity of the client whose Update was accepted."""
    reason: str
    """As given."""
    update: str
    """Id of the Temporal Update: one request is one event, however often it is delivered."""

    def key(self) -> str:
        return f"operator/{self.update}"
