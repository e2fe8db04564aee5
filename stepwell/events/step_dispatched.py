"""StepDispatched."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from stepwell.events.base import Event


def _without_settings(body: dict[str, Any]) -> dict[str, Any]:
    """Schema 1 knew no settings."""
    return {**body, "settings": {}}


class StepDispatched(Event):
    """The prompts of a step were handed to their groups."""

    type: Literal["StepDispatched"] = "StepDispatched"

    SCHEMA = 2
    UPCASTS: ClassVar[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {1: _without_settings}

    step: int
    """Training step, from 0; it turns version `step` into `step + 1`."""
    version: int
    """Weight version that generates the step: `max(0, step - max_staleness)`."""
    tasks: list[str]
    """Digest of each prompt's task, by index in the step."""

    settings: dict[str, float | int]
    """What operators have set by then, by key of the recipe: it holds for the step's generation and training."""

    def key(self) -> str:
        return f"dispatch/{self.step}"
