"""StepDispatched."""

from typing import Literal

from stepwell.events.base import Event


class StepDispatched(Event):
    """The prompts of a step were handed to their groups."""

    type: Literal["StepDispatched"] = "StepDispatched"

    step: int
    """Training step, from 0; it turns version `step` into `step + 1`."""
    version: int
    """Weight version that generates the step: `max(0, step - max_staleness)`."""
    tasks: list[str]
    """Digest of each prompt's task, by index in the step."""

    def key(self) -> str:
        return f"dispatch/{self.step}"
