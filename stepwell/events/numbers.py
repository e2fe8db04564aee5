"""Digests and environment of a weight version."""

from pydantic import BaseModel, ConfigDict


class WeightDigests(BaseModel):
    """Merkle digests over (name, dtype, shape, bytes), independent of layout."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    master: str
    """Float32 master weights."""
    exported: str
    """Weights as engines load them."""
    optimiser: str
    """Optimiser state."""
