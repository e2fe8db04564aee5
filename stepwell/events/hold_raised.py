"""HoldRaised."""

from typing import Literal

from stepwell.events.base import Event


class HoldRaised(Event):
    """The run waits for an operator, of itself: a gate of the recipe, or a limit that was reached. Stream
    `operator/<run>`, where the answer follows."""

    type: Literal["HoldRaised"] = "HoldRaised"
    KIND = "operational"

    hold: str
    """`limit/<name>`, or a gate: `publish/<version>`, `validation/<version>`, `band/<metric>/<version>`,
    `smaller/<step>`."""
    number: int
    """How often this hold was raised before: a limit can be reached again after it was moved."""
    cause: str
    """In words, with the figures."""

    def key(self) -> str:
        return f"hold/{self.hold}/{self.number}"
