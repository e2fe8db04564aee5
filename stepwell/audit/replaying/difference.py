"""Something that is recorded, and that what is recorded does not give."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a step as recorded is not the one that is computed."""

    step: int
    """Training step."""
    where: str
    """What records it: a type of event, or `batch` for the batch manifest."""
    field: str
    """Which of its fields."""
    recorded: str
    """What stands there."""
    computed: str
    """What it must be."""
    prompt: int | None = None
    """Index of the group in its step; None for what is of the whole step."""
    rollout: str | None = None
    """Stream of the rollout; None for what is of no single one."""

    def __str__(self) -> str:
        place = f"step {self.step}"
        if self.prompt is not None:
            place += f", group {self.prompt}"
        if self.rollout is not None:
            place += f", {self.rollout}"
        return f"{place}: {self.field} in {self.where} is {self.recorded}, computed is {self.computed}"
