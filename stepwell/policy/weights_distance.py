"""How far two computations of the same weight version lie apart, and how far they may where bits are not promised."""

from collections.abc import Sequence

import torch
from pydantic import BaseModel, ConfigDict

from stepwell.policy.weights import Weights, WeightsError

MEAN_SHARE = 0.05
"""Share of the learning rates by which two computations may differ in the mean over all weights. Where the gradients
agree but for their last bits, so do the steps; a weight whose gradient is nearly 0 may step the other way, and few
are."""


class WeightsDistance(BaseModel):
    """|one - other| over all weights."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max: float
    """The largest."""
    mean: float
    """The mean."""
    weights: int
    """Number of weights."""


class Tolerance(BaseModel):
    """What is still the same version, computed elsewhere."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max: float
    """Bound of `WeightsDistance.max`."""
    mean: float
    """Bound of `WeightsDistance.mean`."""

    def holds(self, distance: WeightsDistance) -> bool:
        """Whether a distance is within it."""
        return distance.max <= self.max and distance.mean <= self.mean


def weights_distance(one: Weights, other: Weights) -> WeightsDistance:
    """Compares tensor by tensor, in float64.

    Raises:
        WeightsError: they are not of the same model, or hold no weights.
    """
    if one.tensors.keys() != other.tensors.keys():
        names = sorted(one.tensors.keys() ^ other.tensors.keys())
        raise WeightsError(f"weights of two models: {names[0]} is in one of them only, as are {len(names) - 1} others")
    largest, total, count = 0.0, 0.0, 0
    for name, tensor in one.tensors.items():
        if tensor.shape != other.tensors[name].shape:
            shapes = f"{list(tensor.shape)} and {list(other.tensors[name].shape)}"
            raise WeightsError(f"weights of two models: {name} has the shapes {shapes}")
        apart = (tensor.to(torch.float64) - other.tensors[name].to(torch.float64)).abs()
        largest = max(largest, float(apart.max())) if apart.numel() else largest
        total += float(apart.sum())
        count += apart.numel()
    if not count:
        raise WeightsError("there are no weights to compare")
    return WeightsDistance(max=largest, mean=total / count, weights=count)


def tolerance(learning_rates: Sequence[float], weights: Weights) -> Tolerance:
    """How far two computations of some steps of AdamW may lie apart.

    A step moves a weight by about its learning rate at most, one way or the other: so the largest difference is bounded
    by twice their sum, the mean by `MEAN_SHARE` of it. Both are widened by one rounding to the weights' type.

    Args:
        learning_rates: Of the steps since a version that both computations had to the bit.
        weights: What came out, for the size of a rounding.
    """
    moved = sum(learning_rates)
    largest, total, count, rounding = 0.0, 0.0, 0, 0.0
    for tensor in weights.tensors.values():
        if tensor.is_floating_point() and tensor.numel():
            size = tensor.to(torch.float64).abs()
            largest, total, count = max(largest, float(size.max())), total + float(size.sum()), count + size.numel()
            rounding = max(rounding, torch.finfo(tensor.dtype).eps)
    mean_size = total / count if count else 0.0
    return Tolerance(max=2 * moved + rounding * largest, mean=MEAN_SHARE * moved + rounding * mean_size)
