"""What a Hugging Face folder says of its model, read for Megatron: its shape, and the names of its tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

from stepwell.policy.trainers.megatron.layout import Experts, ModelShape
from stepwell.policy.trainers.protocol import UnsupportedModel
from stepwell.policy.weights import CONFIG_FILE, WeightsError

FAMILIES = ("llama", "qwen3", "qwen3_moe")
"""`model_type` of what is understood."""


@dataclass(frozen=True)
class FolderModel:
    """The model of a folder, its weights not read."""

    shape: ModelShape
    shapes: Mapping[str, tuple[int, ...]]
    """Shape of every tensor, by its name in transformers' state dict: the names that digests are over."""
    aliases: Mapping[str, str]
    """Further names of tied tensors."""


def read_model(folder: Path) -> FolderModel:
    """Reads a folder's config.

    Raises:
        WeightsError: it has none, or one that cannot be read.
        UnsupportedModel: a model that Megatron would compute otherwise than transformers does.
    """
    if not (folder / CONFIG_FILE).is_file():
        raise WeightsError(f"{folder} is no model folder: wanted {CONFIG_FILE} and model.safetensors in it")
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True)
        with torch.device("meta"):
            model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    except (OSError, ValueError, KeyError) as error:
        raise WeightsError(f"{folder / CONFIG_FILE} cannot be used: {error}") from error
    aliases: dict[str, str] = dict(sorted(model.all_tied_weights_keys.items()))
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items() if name not in aliases}
    return FolderModel(shape=_shape(config), shapes=shapes, aliases=aliases)


def _shape(config: Any) -> ModelShape:
    family: str = config.model_type
    if family not in FAMILIES:
        raise UnsupportedModel(
            f'trainer.backend = "megatron" does not know the model type {family!r}; it knows {", ".join(FAMILIES)}: '
            'use trainer.backend = "torch"'
        )
    rope: Mapping[str, Any] = config.rope_parameters or {}
    odd = {
        "hidden_act": config.hidden_act not in ("silu", "swish"),
        "rope_parameters.rope_type": rope.get("rope_type", "default") != "default",
        "rope_parameters.partial_rotary_factor": rope.get("partial_rotary_factor", 1.0) != 1.0,
        "use_sliding_window": bool(getattr(config, "use_sliding_window", False)),
    }
    if any(odd.values()):
        raise UnsupportedModel(
            f'trainer.backend = "megatron" would compute this model wrongly: of its {CONFIG_FILE} it does not honour '
            f'{", ".join(key for key, is_odd in odd.items() if is_odd)}; use trainer.backend = "torch"'
        )
    heads = int(config.num_attention_heads)
    return ModelShape(
        layers=int(config.num_hidden_layers),
        hidden_size=int(config.hidden_size),
        heads=heads,
        kv_heads=int(config.num_key_value_heads),
        head_size=int(getattr(config, "head_dim", None) or config.hidden_size // heads),
        ffn_size=int(config.intermediate_size),
        vocabulary=int(config.vocab_size),
        context=int(config.max_position_embeddings),
        norm_epsilon=float(config.rms_norm_eps),
        rope_base=float(rope.get("rope_theta", 10000.0)),
        tied=bool(config.tie_word_embeddings),
        qk_norm=family != "llama",
        experts=_experts(config) if family == "qwen3_moe" else None,
    )


def _experts(config: Any) -> Experts:
    dense: set[int] = set(config.mlp_only_layers or ())
    every = int(config.decoder_sparse_step)
    layers = frozenset(i for i in range(int(config.num_hidden_layers)) if i not in dense and (i + 1) % every == 0)
    return Experts(
        count=int(config.num_experts),
        active=int(config.num_experts_per_tok),
        ffn_size=int(config.moe_intermediate_size),
        normalised=bool(config.norm_topk_prob),
        layers=layers,
    )
