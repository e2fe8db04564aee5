"""Hugging Face folders: opening a model, and putting another version of its weights into it.

A new version is read and checked in full before a live tensor is touched, so a folder that does not fit changes
nothing.
"""

import json
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging as transformers_logging

from stepwell.policy.engines.slots import CacheShape
from stepwell.policy.protocol import EngineError

# Keys of config.json that say nothing of what the weights compute.
_INDIFFERENT = {"_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version", "use_cache"}


def open_model(folder: Path, dtype: torch.dtype, device: torch.device, attention: str) -> PreTrainedModel:
    """The model of `folder`, in evaluation mode.

    Raises:
        EngineError: it is no folder of a causal model that this engine can run.
    """
    read_config(folder)
    transformers_logging.disable_progress_bar()  # nothing may write over the run's live view
    try:
        opened = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, attn_implementation=attention, local_files_only=True
        )
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, SafetensorError) as error:
        raise EngineError(f"{folder} is not a model that transformers can open: {error}") from error
    model = cast(PreTrainedModel, opened)
    config = model.config.get_text_config()
    layer_types: set[str] = set(getattr(config, "layer_types", None) or ["full_attention"])
    if layer_types != {"full_attention"}:
        raise EngineError(
            f"{folder} has layers of the kinds {sorted(layer_types)}; the transformers engine runs full attention "
            "only: use the vllm engine"
        )
    model.eval().requires_grad_(False)
    torch.nn.Module.to(model, device)
    return model


def cache_shape(model: PreTrainedModel, rows: int, max_context: int) -> CacheShape:
    """Sizes of the key-value cache of `model`."""
    config: Any = model.config.get_text_config()
    heads = int(config.num_attention_heads)
    return CacheShape(
        layers=int(config.num_hidden_layers),
        rows=rows,
        kv_heads=int(getattr(config, "num_key_value_heads", None) or heads),
        max_context=max_context,
        head_dim=int(getattr(config, "head_dim", None) or config.hidden_size // heads),
    )


def read_config(folder: Path) -> dict[str, Any]:
    """`config.json` of a folder.

    Raises:
        EngineError: it is missing or no JSON object.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise EngineError(f"{path} does not exist; a Hugging Face model folder is wanted") from error
    except (OSError, ValueError) as error:
        raise EngineError(f"{path} cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise EngineError(f"{path} holds no JSON object")
    return cast(dict[str, Any], config)


def check_same_model(config: dict[str, Any], folder: Path) -> None:
    """Raises EngineError unless the folder's configuration computes the same as `config`."""
    other = read_config(folder)
    for key in sorted((config.keys() | other.keys()) - _INDIFFERENT):
        if config.get(key) != other.get(key):
            raise EngineError(
                f"{folder} is another model: its config has {key} = {other.get(key)!r}, "
                f"the engine runs {key} = {config.get(key)!r}"
            )


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Every tensor of the folder's safetensors files, on the CPU.

    Raises:
        EngineError: there is none, or one cannot be read.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise EngineError(f"{folder} holds no *.safetensors file")
    weights: dict[str, torch.Tensor] = {}
    for file in files:
        try:
            with safe_open(file, framework="pt") as tensors:
                weights.update({name: tensors.get_tensor(name) for name in tensors.keys()})  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise EngineError(f"{file} cannot be read: {error}") from error
    return weights


def replace_weights(model: PreTrainedModel, weights: dict[str, torch.Tensor]) -> None:
    """Copies `weights` into the live tensors of `model`; tied tensors stay tied.

    Raises:
        EngineError: names or shapes differ from the model's; nothing was changed then.
    """
    live = model.state_dict()
    tied = set(cast(dict[str, str], model.all_tied_weights_keys))
    missing = sorted(live.keys() - tied - weights.keys())
    unknown = sorted(weights.keys() - live.keys())
    if missing or unknown:
        raise EngineError(
            f"the weights do not fit the model: {len(missing)} tensors missing {missing[:3]}, "
            f"{len(unknown)} unknown {unknown[:3]}"
        )
    for name, tensor in weights.items():
        if tensor.shape != live[name].shape:
            raise EngineError(
                f"the weights do not fit the model: {name} has the shape {tuple(tensor.shape)}, "
                f"wanted {tuple(live[name].shape)}"
            )
    _check_ties(weights, cast(dict[str, str], model.all_tied_weights_keys))
    with torch.inference_mode():
        for name, tensor in weights.items():
            live[name].copy_(tensor)


def _check_ties(weights: dict[str, torch.Tensor], tied: dict[str, str]) -> None:
    for alias, source in tied.items():
        if alias in weights and not torch.equal(weights[alias], weights[source]):
            raise EngineError(f"{alias} differs from {source}, to which the model ties it")
