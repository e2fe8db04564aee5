"""The transformers engine's model: opened from a folder, and given another version's weights in place.

A new version is read and checked in full before a live tensor is touched, so a folder that does not fit changes
nothing.
"""

from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging as transformers_logging

from stepwell.policy.engines.model_folder import check_same_tensors, read_config
from stepwell.policy.engines.slots import CacheShape
from stepwell.policy.protocol import EngineError


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


def replace_weights(model: PreTrainedModel, weights: dict[str, torch.Tensor]) -> None:
    """Copies `weights` into the live tensors of `model`; tied tensors stay tied.

    Raises:
        EngineError: names or shapes differ from the model's; nothing was changed then.
    """
    live = model.state_dict()
    tied = cast(dict[str, str], model.all_tied_weights_keys)
    # A folder may or may not repeat a tied tensor under its second name.
    wanted = {name: tuple(tensor.shape) for name, tensor in live.items() if name not in tied or name in weights}
    check_same_tensors({name: tuple(tensor.shape) for name, tensor in weights.items()}, wanted)
    _check_ties(weights, tied)
    with torch.inference_mode():
        for name, tensor in weights.items():
            live[name].copy_(tensor)


def _check_ties(weights: dict[str, torch.Tensor], tied: dict[str, str]) -> None:
    for alias, source in tied.items():
        if alias in weights and not torch.equal(weights[alias], weights[source]):
            raise EngineError(f"{alias} differs from {source}, to which the model ties it")
