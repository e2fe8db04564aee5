"""RolloutFailed."""

from typing import Literal

from stepwell.events.base import Event


class RolloutFailed(Event):
    """The rollout has no score: its budget of attempts is used up, or its data are broken. It has no vote."""

    type: Literal["RolloutFailed"] = "RolloutFailed"

    failure: Literal["infra", "data"]
    """Whose fault."""
    cause: str
    """In words."""

    def key(self) -> str:
        return "failed"
