"""StepTrained."""

from typing import Any, Literal

from stepwell.events.base import Event
from stepwell.events.numbers import WeightDigests


class StepTrained(Event):
    """One optimiser step was applied: `version = step(parent, batch, config)`. Stream `weights/<run>`."""

    type: Literal["StepTrained"] = "StepTrained"
    MEASURED = frozenset({"duration_s", "environment", "timings_s"})

    step: int
    """Training step."""
    parent: int
    """Version that it was applied to."""
    version: int
    """Version that it made."""
    manifest: str
    """Blob: the batch manifest that was trained."""
    digests: WeightDigests
    """What it is."""
    export: str
    """Blob: manifest of the exported folder, path to digest."""
    probe: list[float]
    """Log-probabilities of the fixed probe with the exported weights."""
    metrics: dict[str, float]
    """Loss, gradient norm, mean and largest |log-probability by the trainer - by the engine|, clip and mask rates,
    tokens."""
    timings_s: dict[str, float]
    """Wall clock by part, in seconds."""
    environment: dict[str, Any]
    """Numeric environment: bits are promised within an equal one."""
    duration_s: float
    """Wall clock, in seconds."""

    def key(self) -> str:
        return f"train/{self.step}"
