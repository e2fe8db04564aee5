"""What a check of identity found: each tensor's place, the layers' table, and the verdict with its reasons."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from stepwell.ptb.identity.comparison import Place
from stepwell.ptb.identity.configuration import FieldDifference
from stepwell.ptb.identity.elsewhere import Found

NEAR = 0.8
"""Least cosine of a tensor with the one that it was made of: fine-tuning moves weights by percents."""
ALONG = 0.5
"""Least alignment with the line from base to instruct for a step to have come along it."""
MOVED = 0.05
"""Least part of the way to the instruct model that counts."""
MOST_UNREAD = 0.1
"""Share of the base's weights that may be unread or missing for a verdict to stand."""
MOST_BLENDED = 0.05
"""Share of the weights that may lie along the line."""
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")


class Origin(StrEnum):
    """What one tensor was made of."""

    BASE = "base"
    INSTRUCT = "instruct"
    BETWEEN = "between base and instruct"
    ELSEWHERE = "another tensor"
    UNKNOWN = "unknown"


class Verdict(StrEnum):
    """What the whole was made of."""

    BASE = "base"
    """Made of the base, or the base itself: the only one that passes."""
    INSTRUCT = "instruct"
    """Most weights are the instruct model's."""
    PARTLY_INSTRUCT = "partly instruct"
    """Some tensors are the instruct model's."""
    BLENDED = "blended with instruct"
    """Weights lie on the way from the base to the instruct model."""
    FOREIGN = "another model"
    """Most weights are neither's."""
    PARTLY_REPLACED = "partly replaced"
    """Some tensors are neither's: initialised anew, added, or another model's."""
    REORDERED = "reordered"
    """Tensors of the base under other names or in another order."""
    OTHER_CONFIGURATION = "another configuration"
    """A core field differs."""
    UNDECIDED = "undecided"
    """Too much of the weights could not be read, or is missing."""


@dataclass(frozen=True)
class TensorEvidence:
    """One matrix of the submitted model."""

    name: str
    elements: int
    place: Place | None
    """None where the base has no tensor of this name and shape."""
    found: Found | None = None
    """Where else it was found; only looked for where it is near to nothing under its own name."""

    @property
    def origin(self) -> Origin:
        """What it was made of."""
        place = self.place
        if self.found is not None:
            return Origin.INSTRUCT if self.found.model == "instruct" else Origin.ELSEWHERE
        if place is None:
            return Origin.UNKNOWN
        if place.place is not None and place.alignment is not None and place.alignment >= ALONG:
            if place.place > 0.5:
                return Origin.INSTRUCT
            if place.place >= MOVED:
                return Origin.BETWEEN
        return Origin.BASE if place.cosine_base >= NEAR else Origin.UNKNOWN


@dataclass(frozen=True)
class LayerLine:
    """One line of the table: a layer, or what lies outside of the layers."""

    layer: str
    elements: int
    to_base: float
    """Mean over the elements of the tensors' relative distances."""
    cosine_base: float
    to_instruct: float | None
    place: float | None
    origins: tuple[Origin, ...]
    """Those of its tensors, each once."""


@dataclass(frozen=True)
class IdentityReport:
    """What was found of a model."""

    differences: tuple[FieldDifference, ...]
    tensors: tuple[TensorEvidence, ...]
    unread: tuple[tuple[str, str], ...]
    """Name and reason."""
    missing: tuple[str, ...]
    """Matrices of the base that the model lacks under any name."""
    unread_share: float
    """Of the base's weights, unread or missing."""
    declared_base: str | None = None
    """What an adapter says it is for."""

    def share(self, *origins: Origin) -> float:
        """Of the weights that were read, those of these origins."""
        total = sum(each.elements for each in self.tensors)
        return sum(each.elements for each in self.tensors if each.origin in origins) / total if total else 0.0

    @property
    def verdict(self) -> Verdict:
        """The first that applies; the configuration first, which no weights excuse."""
        if any(each.is_core for each in self.differences):
            return Verdict.OTHER_CONFIGURATION
        if not self.tensors or self.unread_share > MOST_UNREAD:
            return Verdict.UNDECIDED
        instruct, unknown = self.share(Origin.INSTRUCT), self.share(Origin.UNKNOWN)
        if instruct >= 0.5:
            return Verdict.INSTRUCT
        if unknown >= 0.5:
            return Verdict.FOREIGN
        if instruct > 0:
            return Verdict.PARTLY_INSTRUCT
        if self.share(Origin.BETWEEN) > MOST_BLENDED:
            return Verdict.BLENDED
        if unknown > 0:
            return Verdict.PARTLY_REPLACED
        return Verdict.REORDERED if self.share(Origin.ELSEWHERE) else Verdict.BASE

    @property
    def passed(self) -> bool:
        """Whether the model was made of the base."""
        return self.verdict is Verdict.BASE

    @property
    def is_unchanged(self) -> bool:
        """Whether every matrix is the base's to the bit: allowed, and worth knowing."""
        whole = bool(self.tensors) and not self.missing and not self.unread
        return whole and all(each.place is not None and each.place.to_base == 0 for each in self.tensors)

    def layers(self) -> tuple[LayerLine, ...]:
        """The evidence, layer by layer."""
        groups: defaultdict[str, list[TensorEvidence]] = defaultdict(list)
        for each in self.tensors:
            match = _LAYER.search(each.name)
            groups[match[1] if match else each.name].append(each)
        ordered = sorted(groups, key=lambda name: (not name.isdecimal(), int(name) if name.isdecimal() else 0, name))
        return tuple(_line(name, groups[name]) for name in ordered)


def _line(name: str, tensors: Sequence[TensorEvidence]) -> LayerLine:
    placed = [each.place for each in tensors if each.place is not None]
    return LayerLine(
        layer=name,
        elements=sum(each.elements for each in tensors),
        to_base=_mean(placed, [place.to_base for place in placed]) or 0.0,
        cosine_base=_mean(placed, [place.cosine_base for place in placed]) or 0.0,
        to_instruct=_mean(placed, [place.to_instruct for place in placed]),
        place=_mean(placed, [place.place for place in placed]),
        origins=tuple(dict.fromkeys(each.origin for each in tensors)),
    )


def _mean(places: Sequence[Place], values: Sequence[float | None]) -> float | None:
    known = [(place.elements, value) for place, value in zip(places, values, strict=True) if value is not None]
    return sum(count * value for count, value in known) / sum(count for count, _ in known) if known else None
