"""Finds a tensor under another name, or with its rows or columns in another order."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from stepwell.ptb.identity.tensors import TensorSource

Order = Literal["as it is", "rows in another order", "columns in another order"]
"""How a tensor was found."""

SAMPLE = 4096
"""Evenly spaced elements by which tensors of one shape are compared."""
LIKE = 0.9
"""Least cosine for the same tensor, fine-tuned or not."""
PROBED_ROWS = 32
"""Rows that are looked for among another tensor's."""
MOST_SEARCHED = 12
"""Tensors whose rows are looked for in every other of their shape; later ones only under their own names."""


@dataclass(frozen=True)
class Found:
    """Where a tensor was found."""

    model: str
    """`base` or `instruct`."""
    name: str
    order: Order
    cosine: float


class Elsewhere:
    """Searches the tensors of the known models.

    Args:
        models: By what the finding calls them.
    """

    def __init__(self, models: Sequence[tuple[str, TensorSource]]) -> None:
        self._models = models
        self._samples: dict[tuple[int, ...], list[tuple[int, str, Tensor]]] = {}
        self._by_shape: defaultdict[tuple[int, ...], list[tuple[int, str]]] = defaultdict(list)
        for number, (_, source) in enumerate(models):
            for name, shape in source.shapes.items():
                self._by_shape[shape].append((number, name))
        self._searched = 0

    def find(self, name: str, tensor: Tensor) -> Found | None:
        """The likest tensor, if it is like enough; one of the same name is looked at in other orders first."""
        shape = tuple(tensor.shape)
        if (direct := self._direct(shape, tensor)) is not None:
            return direct
        own = [(number, other) for number, other in self._by_shape[shape] if other == name]
        found = self._reordered(tensor, own)
        if found is None and self._searched < MOST_SEARCHED:
            self._searched += 1
            found = self._reordered(tensor, [each for each in self._by_shape[shape] if each not in own])
        return found

    def _reordered(self, tensor: Tensor, among: Sequence[tuple[int, str]]) -> Found | None:
        """The likest of some tensors, rows or columns in another order."""
        best: Found | None = None
        for number, name in among:
            model, source = self._models[number]
            known = source.read(name)
            rows, columns = _likeness_of_rows(tensor, known), _likeness_of_rows(tensor.T, known.T)
            order: Order = "rows in another order" if rows >= columns else "columns in another order"
            cosine = max(rows, columns)
            if cosine >= LIKE and (best is None or cosine > best.cosine):
                best = Found(model, name, order, cosine)
        return best

    def _direct(self, shape: tuple[int, ...], tensor: Tensor) -> Found | None:
        if shape not in self._samples:
            self._samples[shape] = [
                (number, name, _sample(self._models[number][1].read(name))) for number, name in self._by_shape[shape]
            ]
        here = _sample(tensor)
        best = max(
            ((float(torch.dot(here, other)), number, name) for number, name, other in self._samples[shape]),
            default=(0.0, 0, ""),
        )
        if best[0] < LIKE:
            return None
        return Found(self._models[best[1]][0], best[2], "as it is", best[0])


def _sample(tensor: Tensor) -> Tensor:
    """Evenly spaced elements, as a direction."""
    flat = tensor.reshape(-1)
    places = torch.linspace(0, flat.numel() - 1, min(SAMPLE, flat.numel()), dtype=torch.float64).round().long()
    return torch.nn.functional.normalize(flat[places].double(), dim=0)


def _likeness_of_rows(tensor: Tensor, known: Tensor) -> float:
    """Median, over some rows, of the cosine with the likest row of the other; 0 where several have the same likest."""
    places = torch.linspace(0, tensor.shape[0] - 1, min(PROBED_ROWS, tensor.shape[0])).round().long()
    probed = torch.nn.functional.normalize(tensor[places].float(), dim=1)
    cosines, likest = (probed @ torch.nn.functional.normalize(known.float(), dim=1).T).max(dim=1)
    if len(set(likest.tolist())) < 0.9 * len(places):
        return 0.0
    return float(cosines.median())
