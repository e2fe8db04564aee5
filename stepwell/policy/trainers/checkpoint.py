"""Checkpoints: master weights and optimiser, to the bit. A checkpoint is a cache: a damaged one is refused, and the
version is rebuilt from an earlier one and the recorded batches."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from stepwell.events.canonical import canonical_json
from stepwell.events.numbers import WeightDigests
from stepwell.policy.trainers.torch_optimiser import MasterWeights
from stepwell.policy.weights import DigestMismatch, Weights, weights_digest

_HEADER = "checkpoint.json"
MASTERS_FILE = "masters.safetensors"
OPTIMISER_FILE = "optimiser.safetensors"


class CheckpointHeader(BaseModel):
    """What a checkpoint says of itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int
    """Weight version."""
    digests: WeightDigests
    """At its saving."""
    aliases: dict[str, str]
    """Further names of tied master weights, which their digest covers."""


def write_checkpoint(folder: Path, version: int, digests: WeightDigests, masters: Weights, state: Weights) -> None:
    """Writes a checkpoint folder, which appears complete or not at all.

    Raises:
        FileExistsError: the folder exists.
        OSError: it could not be written.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} exists; a checkpoint is never written over")
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    partial.mkdir(parents=True)
    try:
        save_file(dict(masters.tensors), partial / MASTERS_FILE)
        save_file(dict(state.tensors), partial / OPTIMISER_FILE)
        header = CheckpointHeader(version=version, digests=digests, aliases=dict(masters.aliases))
        (partial / _HEADER).write_bytes(canonical_json(header.model_dump(mode="json")))
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that is what it says of itself."""

    header: CheckpointHeader
    masters: Mapping[str, Tensor]
    """Master weights, by their Hugging Face names."""
    state: Mapping[str, Tensor]
    """The optimiser's, named `<parameter>.<moment>`."""


def read_checkpoint(folder: Path, masters: MasterWeights) -> CheckpointHeader:
    """Checks a checkpoint against its own digests, then loads it.

    Raises:
        DigestMismatch: it is damaged or another model's; nothing was changed.
    """
    found = checked_checkpoint(folder, masters.weights().aliases)
    masters.restore(found.masters, found.state)
    return found.header


def checked_checkpoint(folder: Path, aliases: Mapping[str, str]) -> Checkpoint:
    """Reads a checkpoint and checks it against its own digests.

    Args:
        folder: where it is.
        aliases: ties of the model that it is to be loaded into.

    Raises:
        DigestMismatch: it is damaged, or a model's with other ties.
    """
    try:
        header = CheckpointHeader.model_validate_json((folder / _HEADER).read_bytes())
        weights, state = load_file(folder / MASTERS_FILE), load_file(folder / OPTIMISER_FILE)
    except (OSError, SafetensorError, ValidationError) as error:
        raise DigestMismatch(
            f"{folder} is no whole checkpoint ({error}); rebuild the version from an earlier one"
        ) from error
    if header.aliases != dict(aliases):
        raise DigestMismatch(f"{folder} is another model's: its ties are {header.aliases}")
    for name, found, wanted in (
        (
            "master weights",
            weights_digest(Weights(tensors=weights, aliases=header.aliases)),
            header.digests.master,
        ),
        ("optimiser", weights_digest(Weights(tensors=state)), header.digests.optimiser),
    ):
        if found != wanted:
            raise DigestMismatch(f"{folder}: the {name} have the digest {found}, its record says {wanted}")
    return Checkpoint(header, weights, state)
