"""How far two computations of a version may lie apart."""

import pytest
import torch

from stepwell.policy.weights import Weights, WeightsError
from stepwell.policy.weights_distance import MEAN_SHARE, Tolerance, WeightsDistance, tolerance, weights_distance


def weights(*values: float, dtype: torch.dtype = torch.float32, name: str = "w") -> Weights:
    return Weights(tensors={name: torch.tensor(values, dtype=dtype), "b": torch.zeros(2, dtype=dtype)})


def test_distance_is_taken_over_all_weights() -> None:
    found = weights_distance(weights(1.0, 2.0), weights(1.0, 1.5))
    assert found == WeightsDistance(max=0.5, mean=0.125, weights=4)


def test_equal_weights_have_none() -> None:
    assert weights_distance(weights(1.0, 2.0), weights(1.0, 2.0)).max == 0.0


@pytest.mark.parametrize(
    ("other", "said"),
    [(weights(1.0, 2.0, name="v"), "v is in one of them only"), (weights(1.0), r"w has the shapes \[2\] and \[1\]")],
)
def test_weights_of_two_models_are_refused(other: Weights, said: str) -> None:
    with pytest.raises(WeightsError, match=said):
        weights_distance(weights(1.0, 2.0), other)


def test_tolerance_grows_with_the_learning_rates_of_the_steps() -> None:
    found = tolerance([1e-3, 3e-3], weights(1.0, 3.0))
    eps = torch.finfo(torch.float32).eps
    assert found.max == pytest.approx(2 * 4e-3 + eps * 3.0, rel=1e-12)
    assert found.mean == pytest.approx(MEAN_SHARE * 4e-3 + eps * 1.0, rel=1e-12)


def test_tolerance_allows_a_rounding_of_the_exported_type() -> None:
    coarse, fine = (tolerance([1e-6], weights(1.0, 3.0, dtype=dtype)) for dtype in (torch.bfloat16, torch.float32))
    assert coarse.max > 3.0 * 2**-8 > fine.max


@pytest.mark.parametrize(("largest", "mean", "holds"), [(1.0, 0.1, True), (1.1, 0.1, False), (1.0, 0.2, False)])
def test_both_bounds_must_hold(largest: float, mean: float, holds: bool) -> None:
    distance = WeightsDistance(max=largest, mean=mean, weights=4)
    assert Tolerance(max=1.0, mean=0.1).holds(distance) is holds


def test_a_step_of_adamw_with_noise_in_its_gradients_is_within_the_tolerance() -> None:
    """What the bounds are for: the same steps, with gradients that agree but for their last bits."""
    torch.manual_seed(0)
    start, gradients = torch.randn(20_000), [torch.randn(20_000) * 1e-3 for _ in range(4)]
    ends: list[Weights] = []
    for noise in (0.0, 1e-6):
        moved = torch.nn.Parameter(start.clone())
        optimiser = torch.optim.AdamW([moved], lr=1e-3, weight_decay=0.0)
        for gradient in gradients:
            moved.grad = gradient * (1 + noise * torch.randn(20_000))
            optimiser.step()
        ends.append(Weights(tensors={"w": moved.detach()}))
    distance = weights_distance(*ends)
    assert distance.max > 0
    assert tolerance([1e-3] * 4, ends[0]).holds(distance)


def test_a_step_that_was_left_out_is_beyond_the_tolerance() -> None:
    torch.manual_seed(0)
    start, gradient = torch.randn(20_000), torch.randn(20_000)
    moved = torch.nn.Parameter(start.clone())
    optimiser = torch.optim.AdamW([moved], lr=1e-3, weight_decay=0.0)
    moved.grad = gradient
    optimiser.step()
    distance = weights_distance(Weights(tensors={"w": moved.detach()}), Weights(tensors={"w": start}))
    assert not tolerance([1e-3], Weights(tensors={"w": start})).holds(distance)
