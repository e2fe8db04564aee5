"""Estimates of memory, against published figures and against sums made by hand."""

from typing import Any

import pytest

from stepwell.mlperf.engine_memory import engine_memory, sequence_bytes, token_bytes
from stepwell.mlperf.parameters import parameters
from stepwell.mlperf.trainer_memory import layer_input_bytes, layer_inside_bytes, trainer_memory
from stepwell.recipe.cluster import ClusterSection
from stepwell.recipe.loading import load_recipe
from stepwell.recipe.model_shape import ModelShape
from stepwell.recipe.recipe import FolderPolicy
from tests.unit.test_model_shape import DENSE, EXPERTS, HYBRID
from tests.unit.test_recipe import RECIPES


def cluster(gpus: int, **policy: int) -> ClusterSection:
    """A cluster whose policy pool has so many GPUs."""
    values: dict[str, Any] = {"nodes": gpus, **policy}
    return ClusterSection.model_validate(
        {"gpus_per_node": 1, "gpu_memory_gb": 80.0, "policy": values, "generation": {"nodes": 1}}
    )


def qwen35() -> ModelShape:
    """The shape in the shipped recipes."""
    policy = load_recipe(RECIPES / "qwen35-397b-gbs256.toml").policy
    assert isinstance(policy, FolderPolicy)
    assert policy.shape is not None
    return policy.shape


@pytest.mark.parametrize("replicas", [1, 8, 64])
def test_a_parameter_takes_what_megatrons_documentation_says(replicas: int) -> None:
    """bfloat16 parameters, float32 gradients, distributed optimiser: 6 + 12/d bytes a parameter."""
    memory = trainer_memory(ModelShape(**DENSE), cluster(replicas), tokens=0)
    expected = (6 + 12 / replicas) * parameters(ModelShape(**DENSE)).total
    assert memory.total == pytest.approx(expected)


def test_state_is_as_large_as_the_zero_paper_says() -> None:
    """Rajbhandari et al. 2020 (arXiv:1910.02054), figure 1: 7.5 billion parameters on 64 GPUs take 31.4 GB with the
    optimiser shared, of which 2 bytes are gradients, where ours have 4."""
    scale = 7.5e9 / parameters(ModelShape(**DENSE)).total
    memory = trainer_memory(ModelShape(**DENSE), cluster(64), tokens=0)
    assert scale * (memory.weights + memory.gradients / 2 + memory.optimiser) / 1e9 == pytest.approx(31.4, abs=0.05)


def test_a_cached_token_of_opt_13b_takes_800_kilobytes() -> None:
    """Kwon et al. 2023 (arXiv:2309.06180), section 3: 2 x 5120 x 40 x 2 bytes."""
    opt = ModelShape(
        source="arXiv:2205.01068",
        layers=40,
        hidden=5120,
        vocabulary=50_272,
        heads=40,
        kv_heads=40,
        head_dim=128,
        feed_forward=20_480,
    )
    assert token_bytes(opt, gpus=1) == 800 * 1024
    assert token_bytes(opt, gpus=8) == 100 * 1024


def test_qwen35_has_the_parameters_of_its_name() -> None:
    """397 billion with the vision tower of about half a billion, 17 billion of them active."""
    assert parameters(qwen35()).total / 1e9 == pytest.approx(396.3, abs=0.05)


def test_the_policy_pool_of_the_reference_holds_what_was_reckoned_by_hand() -> None:
    """30 layers and the head on 32 GPUs: experts 386.5 billion / 64 on each, shared by none; the rest / 4, by 8."""
    shape = qwen35()
    memory = trainer_memory(shape, cluster(64, tensor_parallel=4, pipeline_parallel=2, expert_parallel=32), 65_536)
    experts = 60 * 512 * 3 * 4096 * 1024 / 64
    dense = (parameters(shape).layers_dense / 2 + 248_320 * 4096) / 4
    assert memory.weights == pytest.approx(2 * (experts + dense))
    assert memory.optimiser == pytest.approx(12 * (experts + dense / 8))
    assert memory.kept == pytest.approx(30 * 65_536 * 4096 * 2 / 4)
    assert memory.logits == pytest.approx(2 * 65_536 * 248_320 * 2 / 4)


def test_stages_keep_as_many_inputs_as_micro_batches_under_way() -> None:
    shape = ModelShape(**DENSE | {"vocabulary": 1})  # so that the first stage is the fuller
    halves = trainer_memory(shape, cluster(2, pipeline_parallel=2), 1024)
    assert halves.logits == 0
    assert halves.kept == trainer_memory(shape, cluster(1), 1024).kept


def test_a_dense_layers_inside_is_the_sum_of_its_tensors() -> None:
    """Input, queries, keys, values, output; input, gate, up and product of the feed-forward layer."""
    numbers = 48 + 64 + 32 + 32 + 64 + 48 + 3 * 56
    assert layer_inside_bytes(ModelShape(**DENSE), 10) == 10 * 2 * numbers
    assert layer_input_bytes(ModelShape(**DENSE), 10) == 10 * 2 * 48


def test_a_token_holds_a_copy_for_each_of_its_experts() -> None:
    routed = 2 * (2 * 48 + 3 * 24)
    numbers = 48 + 64 + 32 + 32 + 64 + 48 + routed
    assert layer_inside_bytes(ModelShape(**EXPERTS), 1) == 2 * numbers


def test_linear_attention_caches_no_token_and_one_state_a_sequence() -> None:
    shape = ModelShape(**HYBRID)
    assert token_bytes(shape, gpus=1) == 2 * 2 * 2 * 16 * 2
    assert sequence_bytes(shape, gpus=1) == 2 * (4 * 8 * 48 + 2 * (2 * 16 + 48) * 3)


def test_an_engine_holds_its_part_of_the_weights_and_every_sequence_at_its_longest() -> None:
    shape = qwen35()
    memory = engine_memory(shape, gpus=8, sequences=64, context=65_536)
    assert memory.weights == 2 * parameters(shape).total / 8
    assert memory.kv_cache == 64 * 65_536 * (2 * 15 * 1 * 256 * 2)
    assert memory.total == memory.weights + memory.kv_cache + memory.states
