"""VersionCreated."""

from typing import Any, Literal

from stepwell.events.base import Event
from stepwell.events.numbers import WeightDigests


class VersionCreated(Event):
    """Version 0 exists: by a supervised warm-up, or from a model folder. First fact of `weights/<run>`."""

    type: Literal["VersionCreated"] = "VersionCreated"
    MEASURED = frozenset({"duration_s", "environment"})

    version: Literal[0] = 0
    """Always 0."""
    origin: str
    """Where it comes from: `warm-up`, the digest of a given folder, or a warm-up of that with the digest of its
    demonstrations."""
    digests: WeightDigests
    """What it is."""
    export: str
    """Blob: manifest of the exported folder, path to digest."""
    probe_ids: list[int]
    """The fixed probe sequence by which engines attest versions."""
    probe: list[float]
    """Log-probabilities of the probe as the trainer computes them with the exported weights."""
    metrics: dict[str, float]
    """Of the warm-up: losses, steps."""
    environment: dict[str, Any]
    """Numeric environment: bits are promised within an equal one."""
    duration_s: float
    """Wall clock, in seconds."""

    def key(self) -> str:
        return "version/0"
