"""Where a tensor lies between the base's and the instruct model's.

    distance to base      |M − B| / |B|
    cosine to base        M·B / |M||B|
    place                 t = (M − B)·(I − B) / |I − B|², 0 at the base and 1 at the instruct model
    alignment             cosine of M − B with I − B

In as many dimensions as a matrix has, a step that training takes is nearly at right angles to another's: only what was
made of the instruct model, or blended with it, lies along the line to it.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

CHUNK = 4 << 20
"""Elements that are summed in float64 at once."""
SAME_MODELS = 1e-6
"""Distance below which base and instruct model do not differ in a tensor, and nothing tells them apart."""


@dataclass(frozen=True)
class Place:
    """Of one tensor."""

    elements: int
    to_base: float
    """Distance relative to the base's length."""
    cosine_base: float
    to_instruct: float | None
    """Relative to the instruct model's length; None without one."""
    cosine_instruct: float | None
    place: float | None
    """On the line from the base; None without an instruct model, or where it does not differ from the base."""
    alignment: float | None
    """As `place`; 0 for an unchanged tensor."""


def place_of(submitted: Tensor, base: Tensor, instruct: Tensor | None) -> Place:
    """Compares one tensor with those of the same shape."""
    sums = _Sums()
    flat = [each.reshape(-1) for each in (submitted, base, *(() if instruct is None else (instruct,)))]
    for start in range(0, flat[0].numel(), CHUNK):
        sums.add(*(each[start : start + CHUNK].double() for each in flat))
    return sums.place(flat[0].numel(), has_instruct=instruct is not None)


@dataclass
class _Sums:
    mm: float = 0.0
    bb: float = 0.0
    ii: float = 0.0
    mb: float = 0.0
    mi: float = 0.0
    to_base: float = 0.0
    to_instruct: float = 0.0
    apart: float = 0.0
    along: float = 0.0

    def add(self, m: Tensor, b: Tensor, i: Tensor | None = None) -> None:
        self.mm += _dot(m, m)
        self.bb += _dot(b, b)
        self.mb += _dot(m, b)
        step = m - b
        self.to_base += _dot(step, step)
        if i is not None:
            line, rest = i - b, m - i
            self.ii += _dot(i, i)
            self.mi += _dot(m, i)
            self.to_instruct += _dot(rest, rest)
            self.apart += _dot(line, line)
            self.along += _dot(step, line)

    def place(self, elements: int, *, has_instruct: bool) -> Place:
        tells = has_instruct and math.sqrt(self.apart) > SAME_MODELS * math.sqrt(self.bb)
        length = math.sqrt(self.to_base * self.apart)
        return Place(
            elements=elements,
            to_base=_ratio(math.sqrt(self.to_base), math.sqrt(self.bb)),
            cosine_base=_ratio(self.mb, math.sqrt(self.mm * self.bb)),
            to_instruct=_ratio(math.sqrt(self.to_instruct), math.sqrt(self.ii)) if has_instruct else None,
            cosine_instruct=_ratio(self.mi, math.sqrt(self.mm * self.ii)) if has_instruct else None,
            place=self.along / self.apart if tells else None,
            alignment=(self.along / length if length else 0.0) if tells else None,
        )


def _dot(one: Tensor, other: Tensor) -> float:
    return float(torch.dot(one, other))


def _ratio(part: float, whole: float) -> float:
    """Of two lengths; 0 of nothing, without bound where only the whole is nothing."""
    if whole:
        return part / whole
    return math.inf if part else 0.0
