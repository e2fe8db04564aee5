"""RolloutFailed."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from stepwell.events.base import Event


def _same(body: dict[str, Any]) -> dict[str, Any]:
    """Schema 2 only adds a kind of failure."""
    return body


class RolloutFailed(Event):
    """The rollout has no score: its budget of attempts is used up, or its data are broken. It has no vote."""

    type: Literal["RolloutFailed"] = "RolloutFailed"

    SCHEMA = 2
    UPCASTS: ClassVar[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {1: _same}

    failure: Literal["infra", "data", "operator"]
    """Whose doing: `operator` skipped the prompt, or stopped the run."""
    cause: str
    """In words."""

    def key(self) -> str:
        return "failed"
