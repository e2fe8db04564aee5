"""What the ranks of a Megatron trainer do together between micro-batches: gradients added up, their norm, and tensors
put together again.

Whatever is added here is added in the order of ranks, in every rank: the same layout gives the same bits, whoever was
first and however the ranks talk.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from stepwell.policy.trainers.megatron.layout import Across, Layout
from stepwell.policy.trainers.megatron.weight_map import WeightUnit
from stepwell.policy.trainers.protocol import NonFinite

_BUCKET = 1 << 22
"""Elements exchanged at once, if one tensor has no more: what bounds the memory of an exchange, times the ranks."""


class Replicas:
    """The groups of ranks, as one rank sees them. Every method is called by all ranks."""

    def __init__(self, layout: Layout, units: Sequence[WeightUnit], rank: int) -> None:
        """Makes the groups; torch.distributed must be there."""
        self._layout = layout
        self._units = units
        self._rank = rank
        self._across: dict[str, Across] = {name: unit.across for unit in units for name in unit.parameters}
        kinds: tuple[Across, ...] = ("none", "tensor", "expert")
        # All ranks make all groups, in the same order: new_group wants it.
        self._same: dict[Across, dist.ProcessGroup | None] = {across: self._group_of_same(across) for across in kinds}
        self._parts: dict[Across, dist.ProcessGroup | None] = {across: self._group_of_parts(across) for across in kinds}

    def add_up(self, gradients: Mapping[str, Tensor]) -> None:
        """Overwrites each gradient with its sum over the ranks that hold the same part of the same weights."""
        for across, names in self._by_kind(gradients):
            group = self._same[across]
            if group is None:
                continue
            for bucket in _buckets([gradients[name] for name in names]):
                flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
                total, *others = _gathered(flat, group)
                for other in others:
                    total.add_(other)
                for tensor, piece in zip(bucket, total.split([tensor.numel() for tensor in bucket]), strict=True):
                    tensor.copy_(piece.view_as(tensor))

    def norm(self, gradients: Mapping[str, Tensor], divisor: float) -> float:
        """Divides the gradients and returns the global norm of the whole model's, the same in every rank.

        Raises:
            NonFinite: in which tensors of which rank.
        """
        squares: list[Tensor] = []
        for name, gradient in gradients.items():
            square = torch.linalg.vector_norm(gradient.div_(divisor)).double().square()
            # Of the ranks that hold the same, the first counts.
            squares.append(square if self._counts(self._across[name]) else square * 0.0)
        ours = torch.stack(squares)
        ranks = [ours] if self._layout.ranks == 1 else _gathered(ours, dist.group.WORLD)
        for rank, theirs in enumerate(ranks):
            bad = [name for name, square in zip(gradients, theirs.tolist(), strict=True) if not math.isfinite(square)]
            if bad:
                raise NonFinite(f"the gradient is not finite in {len(bad)} tensors of rank {rank}, first in {bad[0]}")
        return float(torch.stack([theirs.sum() for theirs in ranks]).sum().sqrt())

    def whole(self, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """The Hugging Face tensors, on the CPU, unit by unit, in every rank of the first replica; elsewhere nothing.

        Args:
            tensors: by the names of Megatron's parameters; a unit without is left out.
        """
        if self._layout.replica(self._rank):
            return
        for unit in self._units:
            if unit.parameters[0] not in tensors:
                continue
            own = [tensors[name].detach().contiguous() for name in unit.parameters]
            ranks = self._from_parts(own, unit.across)
            for name, tensor in zip(unit.names, unit.cut.join(ranks), strict=True):
                yield name, tensor.contiguous().cpu()

    def _from_parts(self, own: list[Tensor], across: Across) -> list[list[Tensor]]:
        group = self._parts[across]
        if group is None:
            return [own]
        by_parameter = [_gathered(tensor, group) for tensor in own]
        return [list(ranks) for ranks in zip(*by_parameter, strict=True)]

    def _counts(self, across: Across) -> bool:
        return self._rank < self._layout.parts(across)

    def _by_kind(self, gradients: Mapping[str, Tensor]) -> Iterator[tuple[Across, list[str]]]:
        for across in self._same:
            yield across, [name for name in gradients if self._across[name] == across]

    def _group_of_same(self, across: Across) -> dist.ProcessGroup | None:
        """Ranks that hold the same part as this one; None if no other does."""
        parts = self._layout.parts(across)
        return self._group([range(part, self._layout.ranks, parts) for part in range(parts)])

    def _group_of_parts(self, across: Across) -> dist.ProcessGroup | None:
        """Ranks that hold the parts of the first replica's tensors; None if they are whole."""
        parts = self._layout.parts(across)
        return self._group([range(start, start + parts) for start in range(0, self._layout.ranks, parts)])

    def _group(self, members: Sequence[range]) -> dist.ProcessGroup | None:
        mine: dist.ProcessGroup | None = None
        for ranks in members:
            if len(ranks) > 1:
                group = dist.new_group(list(ranks))
                if self._rank in ranks:
                    assert isinstance(group, dist.ProcessGroup)
                    mine = group
        return mine


def _gathered(tensor: Tensor, group: dist.ProcessGroup | None) -> list[Tensor]:
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, tensor, group=group)
    return parts


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if bucket and size + tensor.numel() > _BUCKET:
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.numel()
    if bucket:
        yield bucket
