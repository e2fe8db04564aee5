"""Small random models, and what an agent may make of them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

CONFIG: dict[str, Any] = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "head_dim": 16,
    "vocab_size": 200,
    "tie_word_embeddings": True,
}
Tensors = dict[str, Tensor]


def random_tensors(seed: int) -> Tensors:
    """Weights of the configuration, as an initialisation draws them."""
    noise = torch.Generator().manual_seed(seed)

    def drawn(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, generator=noise) * 0.02

    tensors: Tensors = {"model.embed_tokens.weight": drawn(200, 64), "model.norm.weight": torch.ones(64)}
    for layer in range(4):
        at = f"model.layers.{layer}."
        tensors |= {
            f"{at}self_attn.q_proj.weight": drawn(64, 64),
            f"{at}self_attn.k_proj.weight": drawn(32, 64),
            f"{at}self_attn.v_proj.weight": drawn(32, 64),
            f"{at}self_attn.o_proj.weight": drawn(64, 64),
            f"{at}mlp.gate_proj.weight": drawn(96, 64),
            f"{at}mlp.up_proj.weight": drawn(96, 64),
            f"{at}mlp.down_proj.weight": drawn(64, 96),
            f"{at}input_layernorm.weight": torch.ones(64),
        }
    return tensors


def moved(tensors: Mapping[str, Tensor], share: float, seed: int) -> Tensors:
    """Each weight moved by a share of the tensor's size in a direction of its own, as training does."""
    noise = torch.Generator().manual_seed(seed)
    return {
        name: tensor + share * tensor.std(correction=0) * torch.randn(tensor.shape, generator=noise)
        for name, tensor in tensors.items()
    }


def between(base: Mapping[str, Tensor], other: Mapping[str, Tensor], share: float) -> Tensors:
    """A part of the way from one to the other."""
    return {name: tensor + share * (other[name] - tensor) for name, tensor in base.items()}


def changed(tensors: Mapping[str, Tensor], where: str, change: Callable[[Tensor], Tensor]) -> Tensors:
    """The tensors whose names hold `where`, changed."""
    return {name: change(tensor) if where in name else tensor for name, tensor in tensors.items()}


def write_model(
    folder: Path, tensors: Mapping[str, Tensor], config: Mapping[str, Any] = CONFIG, shards: int = 1
) -> Path:
    """A folder as Hugging Face has it."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(dict(config)))
    names = sorted(tensors)
    for shard in range(shards):
        name = "model.safetensors" if shards == 1 else f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        save_file({each: tensors[each].contiguous().clone() for each in names[shard::shards]}, folder / name)
    return folder


def in_eight_bits(tensors: Mapping[str, Tensor]) -> Tensors:
    """Matrices as bitsandbytes stores them: rows scaled to whole numbers up to 127, and their maxima."""
    found: Tensors = {}
    for name, tensor in tensors.items():
        if tensor.dim() < 2:
            found[name] = tensor
            continue
        most = tensor.abs().amax(dim=1)
        found[name] = (tensor / most[:, None] * 127).round().to(torch.int8)
        found[name.removesuffix("weight") + "SCB"] = most
    return found


def in_blocks_of_float8(tensors: Mapping[str, Tensor], block: int = 32) -> Tensors:
    """Matrices in float8 with a scale for each block."""
    found: Tensors = {}
    for name, tensor in tensors.items():
        if tensor.dim() < 2:
            found[name] = tensor
            continue
        rows, columns = -(-tensor.shape[0] // block), -(-tensor.shape[1] // block)
        scale = torch.rand(rows, columns, generator=torch.Generator().manual_seed(5)) + 0.01
        wide = scale.repeat_interleave(block, 0)[: tensor.shape[0]].repeat_interleave(block, 1)[:, : tensor.shape[1]]
        found[name] = (tensor / wide).to(torch.float8_e4m3fn)
        found[name + "_scale_inv"] = scale
    return found


def write_adapter(folder: Path, seed: int, size: float, base: str = "org/base") -> Path:
    """A LoRA adapter for the attention, as peft writes it."""
    noise = torch.Generator().manual_seed(seed)
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": 4, "lora_alpha": 8, "base_model_name_or_path": base}))
    tensors: Tensors = {}
    for layer in range(4):
        at = f"base_model.model.model.layers.{layer}.self_attn.q_proj.lora_"
        tensors[f"{at}A.weight"] = torch.randn(4, 64, generator=noise) * 0.1
        tensors[f"{at}B.weight"] = torch.randn(64, 4, generator=noise) * size
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


def merged(tensors: Mapping[str, Tensor], adapter: Path) -> Tensors:
    """The adapter put into the weights, by the formula of its paper: W + alpha / r · B·A."""
    pairs = load_file(adapter / "adapter_model.safetensors")
    found = dict(tensors)
    for layer in range(4):
        at = f"layers.{layer}.self_attn.q_proj"
        down, up = (pairs[f"base_model.model.model.{at}.lora_{side}.weight"] for side in "AB")
        found[f"model.{at}.weight"] = tensors[f"model.{at}.weight"] + 8 / 4 * up @ down
    return found
