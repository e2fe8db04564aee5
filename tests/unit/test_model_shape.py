"""The published configuration of a model, and how many parameters it comes to."""

from typing import Any

import pytest
import torch
from transformers import (
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeTextConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from stepwell.mlperf.parameters import active_parameters, parameters
from stepwell.recipe.model_shape import ModelShape, differences

DENSE: dict[str, Any] = {
    "source": "a test",
    "layers": 4,
    "hidden": 48,
    "vocabulary": 100,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 16,
    "feed_forward": 56,
}
EXPERTS: dict[str, Any] = {key: value for key, value in DENSE.items() if key != "feed_forward"} | {
    "experts": 8,
    "experts_per_token": 2,
    "expert_feed_forward": 24,
    "shared_feed_forward": 0,
}
HYBRID: dict[str, Any] = EXPERTS | {
    "shared_feed_forward": 40,
    "output_gate": True,
    "full_attention_every": 2,
    "linear_key_heads": 2,
    "linear_value_heads": 4,
    "linear_key_dim": 8,
    "linear_value_dim": 12,
    "linear_kernel": 4,
}
COMMON: dict[str, Any] = {
    "num_hidden_layers": 4,
    "hidden_size": 48,
    "vocab_size": 100,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
ROUTED = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_conv_kernel_dim": 4,
}


def made(shape: dict[str, Any]) -> torch.nn.Module:
    """The model of a shape, as transformers makes it."""
    with torch.device("meta"):
        if shape is DENSE:
            return Qwen3ForCausalLM(Qwen3Config(**COMMON, intermediate_size=56, tie_word_embeddings=False))
        if shape is EXPERTS:
            return Qwen3MoeForCausalLM(Qwen3MoeConfig(**COMMON, **ROUTED, tie_word_embeddings=False))
        types = ["linear_attention", "full_attention"] * 2
        config = Qwen3_5MoeTextConfig(
            **COMMON, **ROUTED, **LINEAR, shared_expert_intermediate_size=40, layer_types=types
        )
        return Qwen3_5MoeForCausalLM(config)


@pytest.mark.parametrize("shape", [DENSE, EXPERTS, HYBRID], ids=["qwen3", "qwen3-moe", "qwen3.5-moe"])
def test_parameters_are_as_many_as_the_model_has(shape: dict[str, Any]) -> None:
    model = made(shape)
    counts = parameters(ModelShape(**shape))
    assert counts.total == sum(each.numel() for each in model.parameters())
    named = dict(model.named_parameters())
    assert counts.experts == sum(each.numel() for name, each in named.items() if ".experts." in name)
    assert counts.linear_attention == sum(each.numel() for name, each in named.items() if ".linear_attn." in name)
    assert counts.attention == sum(each.numel() for name, each in named.items() if ".self_attn." in name)


def test_a_tied_head_counts_once() -> None:
    free, tied = parameters(ModelShape(**DENSE)), parameters(ModelShape(**DENSE, tied=True))
    assert free.total - tied.total == 100 * 48


def test_a_token_meets_its_own_experts_and_all_the_rest() -> None:
    shape = ModelShape(**EXPERTS)
    idle = 4 * (8 - 2) * 3 * 48 * 24
    assert active_parameters(shape) == parameters(shape).total - idle
    assert active_parameters(ModelShape(**DENSE)) == parameters(ModelShape(**DENSE)).total


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kv_heads": 3}, "kv_heads is 3, which does not divide heads, 4"),
        ({"full_attention_every": 3}, "does not divide layers, 4"),
        ({"linear_kernel": None}, "linear_kernel is missing"),
        ({"full_attention_every": 1}, "linear_key_heads would do nothing"),
        ({"experts": None}, "experts is missing"),
        ({"feed_forward": 56}, "experts would do nothing"),
        ({"experts_per_token": 9}, "experts_per_token is 9, of 8 experts"),
        ({"unconfirmed": ["depth"]}, "'depth', which is no figure"),
    ],
)
def test_a_shape_that_contradicts_itself_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ModelShape(**HYBRID | change)


def test_a_folder_of_another_model_is_told_by_its_figures() -> None:
    config = {"text_config": {**COMMON, **ROUTED, **LINEAR, "hidden_size": 64, "num_experts": 16}}
    assert differences(ModelShape(**HYBRID), config) == [
        "policy.shape.hidden is 48, config.json has hidden_size = 64",
        "policy.shape.experts is 8, config.json has num_experts = 16",
    ]
    assert differences(ModelShape(**DENSE), {**COMMON, "intermediate_size": 56}) == []
