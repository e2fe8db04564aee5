"""Whether a submitted model was made of the base: its configuration, and its weights tensor by tensor.

Memory holds one tensor of each model. Vectors (norms, biases) are left out: they are alike in all models.
"""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from stepwell.ptb.identity.adapters import AdaptedModel, is_adapter
from stepwell.ptb.identity.comparison import place_of
from stepwell.ptb.identity.configuration import FieldDifference, config_differences, read_config
from stepwell.ptb.identity.elsewhere import Elsewhere
from stepwell.ptb.identity.report import IdentityReport, Origin, TensorEvidence
from stepwell.ptb.identity.tensors import ModelFolder, TensorSource

LEAST_ELEMENTS = 64
"""A smaller matrix tells nothing."""
_HEAD, _EMBEDDING = "lm_head.weight", "embed_tokens.weight"


@dataclass(frozen=True)
class _Models:
    submitted: TensorSource
    base: TensorSource
    instruct: TensorSource | None
    elsewhere: Elsewhere


def check_identity(model: Path, base: Path, instruct: Path | None = None) -> IdentityReport:
    """Compares a model, or an adapter for the base, with the base and the instruct model.

    Args:
        model: Folder that was submitted.
        base: Folder of what it was to be made of.
        instruct: Folder of what it must not be made of; without it only the distance to the base counts.

    Raises:
        UnreadableModel: one of them has no configuration or no weights that can be read.
    """
    base_source = ModelFolder(base)
    declared: str | None = None
    differences: tuple[FieldDifference, ...] = ()
    if is_adapter(model):
        adapted = AdaptedModel(model, base_source)
        submitted, declared = adapted, adapted.declared_base
    else:
        submitted = ModelFolder(model)
        differences = config_differences(read_config(base), read_config(model))
    instruct_source = None if instruct is None else ModelFolder(instruct)
    known = [("base", base_source), *([] if instruct_source is None else [("instruct", instruct_source)])]
    models = _Models(submitted, base_source, instruct_source, Elsewhere(known))
    tensors = tuple(_evidence(models, name) for name in sorted(_matrices(submitted)))
    missing = _missing(models, tensors)
    return IdentityReport(
        differences=differences,
        tensors=tensors,
        unread=tuple(sorted(submitted.unread.items())),
        missing=missing,
        unread_share=_share_missing(base_source, missing),
        declared_base=declared,
    )


def _matrices(source: TensorSource) -> dict[str, int]:
    """Elements of each matrix."""
    found: dict[str, int] = {}
    for name, shape in source.shapes.items():
        elements = 1
        for size in shape:
            elements *= size
        if len(shape) >= 2 and elements >= LEAST_ELEMENTS:
            found[name] = elements
    return found


def _evidence(models: _Models, name: str) -> TensorEvidence:
    tensor = models.submitted.read(name)
    # The head of a model that is tied is the embedding.
    known = _EMBEDDING if name == _HEAD and name not in models.base.shapes else name
    place = None
    base = _as_large(tensor, models.base, known)
    if base is not None:
        theirs = None
        if models.instruct is not None:
            theirs = _as_large(base, models.instruct, name if name in models.instruct.shapes else known)
        place = place_of(tensor[: base.shape[0]], base, theirs)
    evidence = TensorEvidence(name, tensor.numel(), place)
    if evidence.origin is not Origin.UNKNOWN or tensor.dim() != 2:
        return evidence
    return TensorEvidence(name, tensor.numel(), place, models.elsewhere.find(name, tensor))


def _as_large(tensor: Tensor, source: TensorSource, name: str) -> Tensor | None:
    """A known tensor of the same shape; of tokens' tensors the rows that both have, as vocabularies grow."""
    shape = source.shapes.get(name, ())
    if shape == tuple(tensor.shape):
        return source.read(name)
    if name in (_HEAD, _EMBEDDING) and shape[1:] == tuple(tensor.shape[1:]):
        return source.read(name)[: tensor.shape[0]]
    return None


def _missing(models: _Models, tensors: tuple[TensorEvidence, ...]) -> tuple[str, ...]:
    """Matrices of the base that are neither there by name nor found under another."""
    there = {each.name for each in tensors} | {
        each.found.name for each in tensors if each.found is not None and each.found.order == "as it is"
    }
    wanted = _matrices(models.base)
    if _HEAD not in there and _EMBEDDING in there:
        there.add(_HEAD)  # tied
    return tuple(sorted(wanted.keys() - there))


def _share_missing(base: TensorSource, missing: tuple[str, ...]) -> float:
    wanted = _matrices(base)
    return sum(wanted[name] for name in missing) / (sum(wanted.values()) or 1)
