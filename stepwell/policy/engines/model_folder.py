"""Hugging Face folders: what a model's folder holds, and whether another fits in its place."""

import json
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open

from stepwell.policy.protocol import EngineError

# Keys of config.json that say nothing of what the weights compute.
_INDIFFERENT = {"_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version", "use_cache"}


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
    weights: dict[str, torch.Tensor] = {}
    for file in _weight_files(folder):
        try:
            with safe_open(file, framework="pt") as tensors:
                weights.update({name: tensors.get_tensor(name) for name in tensors.keys()})  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise EngineError(f"{file} cannot be read: {error}") from error
    return weights


def read_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the same tensors, without reading them.

    Raises:
        EngineError: there is none, or one cannot be read.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for file in _weight_files(folder):
        try:
            with safe_open(file, framework="pt") as tensors:
                for name in tensors.keys():  # noqa: SIM118
                    shapes[name] = tuple(tensors.get_slice(name).get_shape())
        except (OSError, SafetensorError) as error:
            raise EngineError(f"{file} cannot be read: {error}") from error
    return shapes


def check_same_tensors(found: dict[str, tuple[int, ...]], wanted: dict[str, tuple[int, ...]]) -> None:
    """Raises EngineError unless names and shapes are those wanted."""
    missing = sorted(wanted.keys() - found.keys())
    unknown = sorted(found.keys() - wanted.keys())
    if missing or unknown:
        raise EngineError(
            f"the weights do not fit the model: {len(missing)} tensors missing {missing[:3]}, "
            f"{len(unknown)} unknown {unknown[:3]}"
        )
    for name, shape in found.items():
        if shape != wanted[name]:
            raise EngineError(f"the weights do not fit the model: {name} has the shape {shape}, wanted {wanted[name]}")


def _weight_files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise EngineError(f"{folder} holds no *.safetensors file")
    return files
