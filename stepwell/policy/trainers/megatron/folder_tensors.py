"""The tensors of safetensors files, one by one: a rank reads only what it holds a part of, and never all at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from stepwell.policy.weights import CONFIG_FILE, WeightsError


class FolderTensors:
    """The tensors of some safetensors files, each read when asked for, in float32."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files: dict[str, Path] = {}
        for file in files:
            with _opened(file) as opened:
                self._files |= dict.fromkeys(opened.keys(), file)

    def __getitem__(self, name: str) -> Tensor:
        """A tensor. Experts that a folder keeps one by one are put together, as transformers does.

        Raises:
            WeightsError: it is not there, or cannot be read.
        """
        if name in self._files:
            with _opened(self._files[name]) as opened:
                return opened.get_tensor(name).float()
        layer, _, which = name.rpartition(".mlp.experts.")
        if layer and which == "down_proj":
            return torch.stack([self[one] for one in self._single(layer, "down_proj")])
        if layer and which == "gate_up_proj":
            pairs = zip(self._single(layer, "gate_proj"), self._single(layer, "up_proj"), strict=True)
            return torch.stack([torch.cat([self[gate], self[up]]) for gate, up in pairs])
        raise WeightsError(f"the weights lack {name}: they are not those of the model in {CONFIG_FILE}")

    def _single(self, layer: str, which: str) -> list[str]:
        names: list[str] = []
        while (name := f"{layer}.mlp.experts.{len(names)}.{which}.weight") in self._files:
            names.append(name)
        if not names:
            raise WeightsError(f"the weights lack the experts of {layer}: wanted {name}")
        return names


def _opened(file: Path) -> Any:
    try:
        return safe_open(file, framework="pt", device="cpu")
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{file} cannot be read as safetensors ({error}); fetch or export it again") from error
