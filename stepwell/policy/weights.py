"""Weights as things with a digest: Merkle tree, deterministic export, loading.

The digest covers (name in the Hugging Face form, dtype, shape, bytes) of every tensor, sorted by name, and the ties; it
does not depend on files, shards or their order. A tied tensor is stored once; its other names are aliases.

    leaf  = merkle("leaf", name, dtype, shape as JSON, little-endian bytes)
    alias = merkle("alias", name, target)
    node  = merkle("node", left, right); an odd one rises unchanged; no leaves at all: merkle("empty")
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from stepwell.events.canonical import canonical_json, tagged_sha256

if TYPE_CHECKING:
    from transformers import PreTrainedModel

WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "config.json"
ALIASES_FILE = "aliases.json"
"""Beside the weights: safetensors keeps metadata in no fixed order, so ties have a file of their own."""

TOKENIZER_FILES = (
    "chat_template.jinja",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
)
"""What travels with an export, where the parent folder has it."""


class WeightsError(Exception):
    """A model folder that cannot be used: what is wrong with it and what to do."""


class DigestMismatch(Exception):
    """Something is not what its record says: what was found, what was wanted."""


@dataclass(frozen=True)
class Weights:
    """The tensors of a model, each once."""

    tensors: Mapping[str, Tensor]
    """On the CPU, by their Hugging Face names."""
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further names of tied tensors: alias to name."""


def weights_of(model: "PreTrainedModel") -> Weights:
    """The weights of a Hugging Face model, without copying; ties as the model declares them."""
    # Declared targets are parameters or buffers of the state dict; an untied model declares none.
    aliases: dict[str, str] = dict(sorted(model.all_tied_weights_keys.items()))
    tensors = {name: tensor.detach() for name, tensor in model.state_dict().items() if name not in aliases}
    return Weights(tensors=tensors, aliases=aliases)


def leaf_digests(weights: Weights) -> dict[str, str]:
    """Digest of each tensor and alias, by name, sorted: where two models differ.

    Raises:
        ValueError: an alias that is also a tensor, or whose target is none.
    """
    return _leaves(weights.tensors.items(), weights.aliases)


def digest_of_each(tensors: Iterable[tuple[str, Tensor]], aliases: Mapping[str, str]) -> str:
    """`weights_digest` of tensors that come one by one, in any order, and are not kept.

    Raises:
        ValueError: see `leaf_digests`.
    """
    return merkle_root(list(_leaves(tensors, aliases).values()))


def _leaves(tensors: Iterable[tuple[str, Tensor]], aliases: Mapping[str, str]) -> dict[str, str]:
    leaves: dict[str, str] = {}
    for name, tensor in tensors:
        shape = canonical_json(list(tensor.shape))
        dtype = str(tensor.dtype).removeprefix("torch.").encode()
        leaves[name] = tagged_sha256("merkle", b"leaf", name.encode(), dtype, shape, _bytes(tensor))
    for alias, target in aliases.items():
        if alias in leaves or target not in leaves:
            raise ValueError(
                f"alias {alias!r} of {target!r}: the alias must not be a tensor, and its target must be one"
            )
    leaves |= {
        alias: tagged_sha256("merkle", b"alias", alias.encode(), target.encode()) for alias, target in aliases.items()
    }
    return dict(sorted(leaves.items()))


def weights_digest(weights: Weights) -> str:
    """Root of the Merkle tree."""
    return merkle_root(list(leaf_digests(weights).values()))


def merkle_root(leaves: Sequence[str]) -> str:
    """Root over leaf digests in their order."""
    if not leaves:
        return tagged_sha256("merkle", b"empty")
    level = list(leaves)
    while len(level) > 1:
        pairs = [
            tagged_sha256("merkle", b"node", left.encode(), right.encode())
            for left, right in zip(level[::2], level[1::2], strict=False)
        ]
        level = pairs + level[len(level) - len(level) % 2 :]
    return level[0]


def save_folder(
    weights: Weights, config: Mapping[str, Any], folder: Path, *, tokenizer_from: Path | None = None
) -> None:
    """Writes a Hugging Face folder: equal weights, config and tokenizer give equal files. It appears complete or not
    at all.

    Args:
        weights: what to write.
        config: content of `config.json`.
        folder: must not exist.
        tokenizer_from: folder whose tokenizer files are copied.

    Raises:
        FileExistsError: the folder exists.
        OSError: it could not be written.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} exists; a weight version is never written over")
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    partial.mkdir(parents=True)
    try:
        (partial / CONFIG_FILE).write_text(json.dumps(dict(config), indent=2, sort_keys=True) + "\n", "utf-8")
        (partial / ALIASES_FILE).write_bytes(canonical_json(dict(weights.aliases)))
        contiguous = {name: tensor.detach().contiguous() for name, tensor in weights.tensors.items()}
        save_file(contiguous, partial / WEIGHTS_FILE, metadata={"format": "pt"})
        for name in TOKENIZER_FILES if tokenizer_from is not None else ():
            assert tokenizer_from is not None
            if (tokenizer_from / name).is_file():
                shutil.copyfile(tokenizer_from / name, partial / name)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def load_folder(folder: Path) -> Weights:
    """The weights of a Hugging Face folder, in one file or in shards.

    A folder that `save_folder` did not write names no ties: its aliases are empty.

    Raises:
        WeightsError: no weights, a shard missing, or a file that is damaged.
    """
    tensors: dict[str, Tensor] = {}
    for file in weight_files(folder):
        try:
            tensors.update(load_file(file))
        except (SafetensorError, OSError) as error:
            raise WeightsError(f"{file} cannot be read as safetensors ({error}); fetch or export it again") from error
    aliases_file = folder / ALIASES_FILE
    aliases = json.loads(aliases_file.read_bytes()) if aliases_file.is_file() else {}
    return Weights(tensors=tensors, aliases=aliases)


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a Hugging Face folder.

    Raises:
        WeightsError: it has none.
    """
    if (folder / WEIGHTS_FILE).is_file():
        return [folder / WEIGHTS_FILE]
    index_file = folder / f"{WEIGHTS_FILE}.index.json"
    if not index_file.is_file():
        raise WeightsError(f"{folder} has no weights: wanted {WEIGHTS_FILE} or {index_file.name} in it")
    index: dict[str, dict[str, str]] = json.loads(index_file.read_bytes())
    return [folder / shard for shard in sorted(set(index["weight_map"].values()))]


def _bytes(tensor: Tensor) -> bytes:
    """Little-endian bytes in row-major order; every platform that torch runs on is little-endian."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
