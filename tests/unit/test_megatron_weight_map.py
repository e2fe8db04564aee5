"""Where a rank's tensors come from, and what a layout may be: pure functions, without Megatron."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from transformers import AutoModelForCausalLM, PreTrainedConfig

from stepwell.policy.trainers.megatron.folder_tensors import FolderTensors
from stepwell.policy.trainers.megatron.layout import Across, Counts, Layout
from stepwell.policy.trainers.megatron.model_folder import read_model
from stepwell.policy.trainers.megatron.weight_map import weight_units
from stepwell.policy.trainers.protocol import UnsupportedModel
from stepwell.policy.weights import WeightsError
from stepwell.recipe.loading import RecipeError, load_recipe
from stepwell.recipe.trainer_section import TrainerSection
from tests.megatron_models import LLAMA_4, QWEN3_2, QWEN3_MOE
from tests.small_models import GPT2, LLAMA, make_folder

MODELS = {"llama": LLAMA_4, "qwen3": QWEN3_2, "qwen3_moe": QWEN3_MOE}
LAYOUTS = [Layout(1), Layout(2), Layout(2, 2), Layout(2, 2, 2)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_parts_of_all_ranks_make_the_whole_again(name: str, layout: Layout, tmp_path: Path) -> None:
    if layout.expert > 1 and name != "qwen3_moe":
        layout = Layout(layout.tensor, layout.data)
    shape = read_model(make_folder(tmp_path / "model", MODELS[name])).shape
    model: Any = AutoModelForCausalLM.from_config(MODELS[name])
    whole = {key: tensor for key, tensor in model.state_dict().items() if key not in model.all_tied_weights_keys}
    units = weight_units(shape, layout)
    seen: list[str] = []
    for unit in units:
        parts = layout.parts(unit.across)
        ranks = [unit.cut.part([whole[key] for key in unit.names], parts, part) for part in range(parts)]
        assert all(len(own) == len(unit.parameters) for own in ranks)
        if unit.across != "none":
            size = sum(whole[key].numel() for key in unit.names)
            assert all(sum(tensor.numel() for tensor in own) == size // parts for own in ranks)
        for key, tensor in zip(unit.names, unit.cut.join(ranks), strict=True):
            assert torch.equal(tensor, whole[key])
            seen.append(key)
    assert sorted(seen) == sorted(whole)
    parameters = [parameter for unit in units for parameter in unit.parameters]
    assert len(set(parameters)) == len(parameters)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_every_part_is_held_once_in_each_replica(factor: int, expert: int, data: int) -> None:
    layout = Layout(factor * expert, data, expert)
    kinds: tuple[Across, ...] = ("none", "tensor", "expert")
    for across in kinds:
        held: dict[int, list[int]] = {}
        for rank in range(layout.ranks):
            held.setdefault(layout.part(across, rank), []).append(layout.replica(rank))
        assert sorted(held) == list(range(layout.parts(across)))
        assert all(set(replicas) == set(range(data)) for replicas in held.values())


def test_layout_that_does_not_divide_the_model_is_refused_with_what_would() -> None:
    smollm2 = Counts(heads=9, kv_heads=3, ffn_size=1536, vocabulary=49152)
    assert Layout(3).refusal(smollm2) == ""
    assert Layout(2).refusal(smollm2) == (
        "trainer.tensor_parallel is 2, which does not divide the model's 3 key-value heads; allowed: 1, 3"
    )
    assert "has no experts" in Layout(2, 1, 2).refusal(Counts(4, 4, 8, 8))
    assert "does not divide the model's 6 experts; allowed: 1, 2" in Layout(4, 1, 4).refusal(Counts(4, 4, 8, 8, 6))


@pytest.mark.parametrize(
    ("config", "changes", "said"),
    [
        (GPT2, {}, "does not know the model type 'gpt2'; it knows llama, qwen3, qwen3_moe"),
        (LLAMA, {"hidden_act": "gelu"}, "does not honour hidden_act"),
        (LLAMA, {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}}, "rope_type"),
    ],
)
def test_model_that_megatron_would_compute_otherwise_is_refused(
    config: PreTrainedConfig, changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    changed = type(config)(**{**config.to_dict(), **changes})
    with pytest.raises(UnsupportedModel, match=said):
        read_model(make_folder(tmp_path / "model", changed))


def test_experts_that_a_folder_keeps_one_by_one_are_put_together(tmp_path: Path) -> None:
    model: Any = AutoModelForCausalLM.from_config(QWEN3_MOE)
    model.save_pretrained(tmp_path / "published")
    tensors = FolderTensors([tmp_path / "published" / "model.safetensors"])
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensors[name], tensor), name
    with pytest.raises(WeightsError, match=r"lack model\.layers\.9\.mlp\.gate\.weight"):
        tensors["model.layers.9.mlp.gate.weight"]
    with pytest.raises(WeightsError, match=r"lack the experts of model\.layers\.9"):
        tensors["model.layers.9.mlp.experts.down_proj"]


def test_keys_are_filled_in_and_validate_again() -> None:
    section = TrainerSection(backend="megatron", tensor_parallel=2)
    assert (section.data_parallel, section.expert_parallel, section.rank_timeout_s) == (1, 1, 60.0)
    assert section.layout == Layout(2, 1, 1)
    assert TrainerSection.model_validate(section.model_dump()) == section
    assert TrainerSection().layout is None
    assert TrainerSection.model_validate(TrainerSection().model_dump()) == TrainerSection()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"tensor_parallel": 2}, "tensor_parallel would do nothing"),
        ({"data_parallel": 1}, "data_parallel would do nothing"),
        ({"expert_parallel": 2}, "expert_parallel would do nothing"),
        ({"backend": "megatron", "ranks": 2}, "ranks is 2, which would do nothing.*set data_parallel"),
        ({"backend": "megatron", "tensor_parallel": 2, "expert_parallel": 4}, "does not divide tensor_parallel, 2"),
    ],
)
def test_keys_that_would_do_nothing_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TrainerSection.model_validate(keys)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["trainer.tensor_parallel=4"], "does not divide the model's 2 key-value heads; allowed: 1, 2"),
        (["trainer.freeze_router=true"], "freeze_router would do nothing: the micro policy has no experts"),
    ],
)
def test_recipe_that_does_not_fit_the_micro_policy_is_refused(settings: list[str], said: str) -> None:
    megatron = ["trainer.backend=megatron", *settings]
    with pytest.raises(RecipeError, match=said):
        load_recipe(Path("recipes/micro.toml"), megatron)
