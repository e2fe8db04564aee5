"""Tensors of a model folder, one at a time, as float32: nothing is loaded whole, no code of the folder runs.

Reads safetensors in one file or in shards; 8-bit weights with their scales. What cannot be read is named with the
reason.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from safetensors import SafetensorError, safe_open
from torch import Tensor

_PREFIXES = (
    "base_model.model.",
    "model.language_model.",
    "language_model.model.",
    "language_model.",
    "transformer.",
    "model.",
)
"""What wrappers put before the names of the same tensors."""
_FLOATS = ("F64", "F32", "F16", "BF16")
_SCALED = ("I8", "F8_E4M3", "F8_E5M2")
_SCALES = ("_scale", "_scale_inv", ".scale")
"""What stands behind `….weight` in the name of its scale; bitsandbytes names its row maxima `….SCB`."""
_BITSANDBYTES_MAX = 127.0


class UnreadableModel(ValueError):
    """A folder that holds no model that can be read."""


class TensorSource(Protocol):
    """Named tensors that are read one at a time."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Of the tensors that can be read, by their plain names."""
        ...

    @property
    def unread(self) -> Mapping[str, str]:
        """Why others cannot, by name."""
        ...

    def read(self, name: str) -> Tensor:
        """One tensor, float32 on the CPU."""
        ...


@dataclass(frozen=True)
class _Place:
    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: str | None = None
    """Name of the scale, for 8-bit weights."""


class ModelFolder:
    """The tensors of a folder of safetensors.

    Args:
        folder: With one or more `.safetensors`.

    Raises:
        UnreadableModel: it has none, or one is broken.
    """

    def __init__(self, folder: Path) -> None:
        files = sorted(folder.glob("*.safetensors"))
        files = [file for file in files if file.name != "adapter_model.safetensors"]
        if not files:
            raise UnreadableModel(f"{folder} has no .safetensors: wanted the weights of a model in that format")
        found: dict[str, _Place] = {}
        for file in files:
            for place in _places(file):
                plain = plain_name(place.name)
                if plain in found:
                    raise UnreadableModel(
                        f"{place.name} in {file.name} is also {found[plain].name} in {found[plain].file.name}: "
                        "wanted each tensor once"
                    )
                found[plain] = place
        self._places: dict[str, _Place] = {}
        self._unread: dict[str, str] = {}
        for name, place in found.items():
            self._sort(name, place, found)

    def _sort(self, name: str, place: _Place, found: Mapping[str, _Place]) -> None:
        if place.dtype in _FLOATS:
            if not name.endswith((*(f".weight{end}" for end in _SCALES), ".SCB")):
                self._places[name] = place
            return
        scale = next((key for key in _scale_names(name) if key in found), None)
        if place.dtype in _SCALED and scale is not None:
            self._places[name] = _Place(place.file, place.name, place.shape, place.dtype, scale)
            self._scales = found
        elif place.dtype in _SCALED[1:]:
            self._places[name] = place  # a float without a scale stands for itself
        elif len(place.shape) >= 1 and place.dtype != "I64":
            self._unread[name] = f"{place.dtype} without a scale that is known: packed or quantised"

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """By plain name."""
        return {name: place.shape for name, place in self._places.items()}

    @property
    def unread(self) -> Mapping[str, str]:
        """By plain name."""
        return self._unread

    def read(self, name: str) -> Tensor:
        """One tensor, float32; 8-bit ones times their scales."""
        place = self._places[name]
        tensor = _tensor(place).float()
        if place.scale is None:
            return tensor
        scale = _tensor(self._scales[place.scale]).float()
        if place.scale.endswith(".SCB"):
            return tensor * (scale.reshape(-1, 1) / _BITSANDBYTES_MAX)
        return tensor * _spread(scale, tensor.shape)


def plain_name(name: str) -> str:
    """The name without what a wrapper puts before it."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return plain_name(name.removeprefix(prefix))
    return name


def _scale_names(name: str) -> Sequence[str]:
    return (*(name + end for end in _SCALES), name.removesuffix("weight") + "SCB")


def _places(file: Path) -> list[_Place]:
    try:
        with file.open("rb") as opened:
            header = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
        entries = cast("dict[str, dict[str, Any]]", header)
        with safe_open(file, framework="pt"):  # checks that the file is as long as its header says
            return [
                _Place(file, name, tuple(entry["shape"]), entry["dtype"])
                for name, entry in sorted(entries.items())
                if name != "__metadata__"
            ]
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, MemoryError, OverflowError) as error:
        raise UnreadableModel(f"{file} is no safetensors file: {error}; copy it again") from error


def _tensor(place: _Place) -> Tensor:
    with safe_open(place.file, framework="pt") as opened:
        return opened.get_tensor(place.name)


def _spread(scale: Tensor, shape: Sequence[int]) -> Tensor:
    """A scale for each tensor, row or block, as large as what it scales."""
    if scale.numel() == 1:
        return scale.reshape(1)
    if scale.dim() < len(shape):
        return scale.reshape(*scale.shape, *[1] * (len(shape) - scale.dim()))
    for axis, wanted in enumerate(shape):
        if scale.shape[axis] not in (1, wanted):
            block = _block(wanted, scale.shape[axis])
            scale = scale.repeat_interleave(block, dim=axis).narrow(axis, 0, wanted)
    return scale


def _block(elements: int, blocks: int) -> int:
    """Elements of a block: of the sizes that give so many, the power of two."""
    smallest = -(-elements // blocks)
    power = 1 << (smallest - 1).bit_length()
    return power if -(-elements // power) == blocks else smallest
