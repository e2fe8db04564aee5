"""A study's figures, against sums made by hand and the official form."""

import json
import math
from typing import Any

import pytest

from stepwell.mlperf.convergence import Evaluation, SeedResult, reference_points, spread, spreads
from stepwell.recipe.loading import load_recipe
from tests.unit.test_recipe import RECIPES

RECIPE = load_recipe(RECIPES / "mlperf-rehearsal.toml").model_dump(mode="json")


def seed(number: int, *scores: float, first: int = 18) -> SeedResult:
    """A seed whose versions from the first on have these pass@k."""
    evaluations = tuple(Evaluation(first + i, 4, score - 0.1, score, score / 2) for i, score in enumerate(scores))
    return SeedResult(number, f"r-seed{number}", "target", 256, 0.69, evaluations)


def test_samples_to_target_are_those_of_the_lowest_version_above_it() -> None:
    assert seed(0, 0.69, 0.70, 0.9).samples_to_target == 19 * 256
    assert seed(0, 0.69).samples_to_target is None
    assert seed(0).judged is None
    assert seed(0, 0.5, 0.6).judged == seed(0, 0.5, 0.6).evaluations[-1]


def test_scatter_is_the_sample_deviation_over_the_mean() -> None:
    each = spread([0.70, 0.74, 0.78])
    assert each is not None
    assert each.mean == pytest.approx(0.74)
    assert each.deviation == pytest.approx(math.sqrt((0.04**2 + 0.04**2) / 2))
    assert each.variation == pytest.approx(0.04 / 0.74)
    assert spread([0.7]) is None
    zero = spread([0.0, 0.0])
    assert zero is not None
    assert zero.variation is None


def test_seeds_are_compared_where_they_passed() -> None:
    found = spreads([seed(0, 0.5, 0.7), seed(1, 0.8)])
    assert found["pass_k"] == spread([0.7, 0.8])
    assert found["pass_1"] == spread([0.7 - 0.1, 0.8 - 0.1])
    assert found["pass_all"] == spread([0.35, 0.4])


def test_a_point_has_the_official_form_and_leaves_out_what_did_not_converge() -> None:
    results = [seed(0, 0.8), seed(1, 0.5, 0.7), seed(2, 0.7), seed(3, 0.1)]
    points = reference_points(results, benchmark="qwen35_397b_grpo", creator="c", platform="p", recipe=RECIPE)
    point = points["qwen35_397b_grpo_ref_256"]
    assert point["BS"] == 256
    assert point["Epochs to converge"] == [4608, 4608, 4864]
    assert point["Hyperparams"]["opt_base_learning_rate"] == 7e-4
    assert point["Hyperparams"]["num_generations_per_prompt"] == 16
    assert json.loads(json.dumps(points)) == points


@pytest.mark.parametrize(
    ("trainer", "steps"), [({"ranks": 2}, 128), ({"backend": "megatron", "tensor_parallel": 4, "data_parallel": 8}, 32)]
)
def test_a_points_accumulated_micro_batches_are_those_of_one_copy_of_the_model(
    trainer: dict[str, Any], steps: int
) -> None:
    results = [seed(number, 0.8) for number in range(3)]
    recipe = {**RECIPE, "trainer": {**RECIPE["trainer"], **trainer}}
    points = reference_points(results, benchmark="b", creator="c", platform="p", recipe=recipe)
    assert points["b_ref_256"]["Hyperparams"]["gradient_accumulation_steps"] == steps


def test_too_few_converged_seeds_make_no_point() -> None:
    with pytest.raises(ValueError, match="2 of 3 seeds reached the target"):
        reference_points(
            [seed(0, 0.8), seed(1, 0.7), seed(2, 0.1)], benchmark="b", creator="c", platform="p", recipe=RECIPE
        )
