"""A LoRA adapter that was not merged, as the model that it makes of the base: W + scale · B·A."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from stepwell.ptb.identity.tensors import TensorSource, UnreadableModel, plain_name

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
_A, _B = ".lora_A", ".lora_B"


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter and no model of its own."""
    files = {file.name for file in folder.glob("*.safetensors")}
    return (folder / CONFIG_FILE).is_file() and files == {WEIGHTS_FILE}


@dataclass(frozen=True)
class _Pair:
    down: Tensor
    up: Tensor
    scale: float


class AdaptedModel:
    """The base with an adapter; a `TensorSource`.

    Args:
        folder: With `adapter_config.json` and `adapter_model.safetensors`, as peft writes them.
        base: What it is put on.

    Raises:
        UnreadableModel: a file is missing or broken, or the adapter changes what the base has not.
    """

    def __init__(self, folder: Path, base: TensorSource) -> None:
        self._base = base
        config = _config(folder / CONFIG_FILE)
        self.declared_base = str(config.get("base_model_name_or_path", ""))
        try:
            tensors = load_file(folder / WEIGHTS_FILE)
        except (SafetensorError, OSError) as error:
            raise UnreadableModel(f"{folder / WEIGHTS_FILE} is no safetensors file: {error}; copy it again") from error
        self._pairs: dict[str, _Pair] = {}
        self._whole: dict[str, Tensor] = {}
        for name, tensor in tensors.items():
            self._take(folder, config, tensors, name, tensor)
        missing = sorted((self._pairs.keys() | self._whole.keys()) - base.shapes.keys())
        if missing:
            raise UnreadableModel(
                f"{folder} adapts {missing[0]}, which the base has not: wanted an adapter of the base"
            )

    def _take(
        self, folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str, tensor: Tensor
    ) -> None:
        if _A in name:
            up = tensors.get(name.replace(_A, _B))
            if up is None:
                raise UnreadableModel(f"{folder} has {name} without its {_B.strip('.')}: the adapter is cut off")
            rank, alpha = tensor.shape[0], float(config.get("lora_alpha", tensor.shape[0]))
            scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
            self._pairs[plain_name(name.split(_A)[0]) + ".weight"] = _Pair(tensor.float(), up.float(), scale)
        elif _B not in name:
            plain = plain_name(name).replace(".modules_to_save.default", "").replace(".modules_to_save", "")
            self._whole[plain] = tensor.float()

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The base's."""
        return self._base.shapes

    @property
    def unread(self) -> Mapping[str, str]:
        """The base's."""
        return self._base.unread

    def read(self, name: str) -> Tensor:
        """One tensor, with the adapter merged."""
        if name in self._whole:
            return self._whole[name]
        tensor = self._base.read(name)
        pair = self._pairs.get(name)
        return tensor if pair is None else tensor + pair.scale * (pair.up @ pair.down)


def _config(path: Path) -> Mapping[str, Any]:
    try:
        loaded: object = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UnreadableModel(f"cannot read {path}: {error}; wanted an adapter's configuration") from error
    if not isinstance(loaded, dict):
        raise UnreadableModel(f"{path} holds a {type(loaded).__name__}: wanted an object")
    return cast("dict[str, Any]", loaded)
