"""Which part of which Hugging Face tensors a rank's Megatron parameters are, and back.

A unit is the least that can be carried over alone: some Hugging Face tensors, the parameters that hold them in every
rank, and how they are cut. Gradients' moments have the shape of their weights, so that the same map carries them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from stepwell.policy.trainers.megatron.layout import Across, Layout, ModelShape


class Cut(Protocol):
    """How tensors become the parameters of ranks."""

    def part(self, whole: Sequence[Tensor], parts: int, index: int) -> list[Tensor]:
        """The parameters of one rank, from the Hugging Face tensors."""
        ...

    def join(self, ranks: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        """The Hugging Face tensors, from the parameters of each rank."""
        ...


@dataclass(frozen=True)
class Whole:
    """Every rank has all of it."""

    def part(self, whole: Sequence[Tensor], parts: int, index: int) -> list[Tensor]:
        return list(whole)

    def join(self, ranks: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        return list(ranks[0])


@dataclass(frozen=True)
class Along:
    """Cut along a dimension."""

    dimension: int

    def part(self, whole: Sequence[Tensor], parts: int, index: int) -> list[Tensor]:
        return [tensor.chunk(parts, self.dimension)[index] for tensor in whole]

    def join(self, ranks: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        return [torch.cat([own[0] for own in ranks], self.dimension)]


@dataclass(frozen=True)
class GateAndUp:
    """The two input matrices of a gated layer, in one: this rank's rows of the gate, then its rows of the other."""

    def part(self, whole: Sequence[Tensor], parts: int, index: int) -> list[Tensor]:
        return [torch.cat([tensor.chunk(parts)[index] for tensor in whole])]

    def join(self, ranks: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        halves = [own[0].chunk(2) for own in ranks]
        return [torch.cat([pair[which] for pair in halves]) for which in (0, 1)]


@dataclass(frozen=True)
class QueryKeyValue:
    """Three projections in one: of each key-value head its queries, its key, its value."""

    kv_heads: int
    heads: int
    head_size: int

    def part(self, whole: Sequence[Tensor], parts: int, index: int) -> list[Tensor]:
        width = whole[0].shape[1]
        groups = [tensor.chunk(parts)[index].reshape(self.kv_heads // parts, -1, width) for tensor in whole]
        return [torch.cat(groups, 1).reshape(-1, width)]

    def join(self, ranks: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        fused = torch.cat([own[0] for own in ranks])
        groups = fused.reshape(self.kv_heads, -1, fused.shape[1])
        queries = self.heads // self.kv_heads * self.head_size
        split = groups.split([queries, self.head_size, self.head_size], 1)
        return [tensor.reshape(-1, fused.shape[1]) for tensor in split]


@dataclass(frozen=True)
class Dealt:
    """A stack of experts, of which each rank has consecutive ones as parameters of their own."""

    def part(self, whole: Sequence[Tensor], parts: int, index: int) -> list[Tensor]:
        return list(whole[0].chunk(parts)[index].unbind())

    def join(self, ranks: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        return [torch.stack([expert for own in ranks for expert in own])]


@dataclass(frozen=True)
class WeightUnit:
    """Some tensors and where they stand."""

    names: tuple[str, ...]
    """In the Hugging Face model."""
    parameters: tuple[str, ...]
    """In a rank's Megatron model; the same in every rank."""
    across: Across
    cut: Cut


def weight_units(shape: ModelShape, layout: Layout) -> tuple[WeightUnit, ...]:
    """All units of a model."""
    rows, columns = Along(0), Along(1)
    units = [
        WeightUnit(("model.embed_tokens.weight",), ("embedding.word_embeddings.weight",), "tensor", rows),
        WeightUnit(("model.norm.weight",), ("decoder.final_layernorm.weight",), "none", Whole()),
    ]
    if not shape.tied:
        units.append(WeightUnit(("lm_head.weight",), ("output_layer.weight",), "tensor", rows))
    for layer in range(shape.layers):
        theirs, ours = f"model.layers.{layer}", f"decoder.layers.{layer}"
        units += [
            _norm(f"{theirs}.input_layernorm", f"{ours}.input_layernorm"),
            _norm(f"{theirs}.post_attention_layernorm", f"{ours}.pre_mlp_layernorm"),
            WeightUnit(
                tuple(f"{theirs}.self_attn.{which}_proj.weight" for which in "qkv"),
                (f"{ours}.self_attention.linear_qkv.weight",),
                "tensor",
                QueryKeyValue(shape.kv_heads, shape.heads, shape.head_size),
            ),
            WeightUnit(
                (f"{theirs}.self_attn.o_proj.weight",),
                (f"{ours}.self_attention.linear_proj.weight",),
                "tensor",
                columns,
            ),
        ]
        if shape.qk_norm:
            units += [
                _norm(f"{theirs}.self_attn.{which}_norm", f"{ours}.self_attention.{which}_layernorm") for which in "qk"
            ]
        if shape.experts is not None and layer in shape.experts.layers:
            units += _experts(theirs, ours, shape.experts.count // layout.expert)
        else:
            units += [
                WeightUnit(
                    (f"{theirs}.mlp.gate_proj.weight", f"{theirs}.mlp.up_proj.weight"),
                    (f"{ours}.mlp.linear_fc1.weight",),
                    "tensor",
                    GateAndUp(),
                ),
                WeightUnit((f"{theirs}.mlp.down_proj.weight",), (f"{ours}.mlp.linear_fc2.weight",), "tensor", columns),
            ]
    return tuple(units)


def _norm(theirs: str, ours: str) -> WeightUnit:
    return WeightUnit((f"{theirs}.weight",), (f"{ours}.weight",), "none", Whole())


def _experts(theirs: str, ours: str, own: int) -> Iterator[WeightUnit]:
    yield WeightUnit((f"{theirs}.mlp.gate.weight",), (f"{ours}.mlp.router.weight",), "none", Whole())
    for their_name, our_name in (("gate_up_proj", "linear_fc1"), ("down_proj", "linear_fc2")):
        parameters = tuple(f"{ours}.mlp.experts.local_experts.{one}.{our_name}.weight" for one in range(own))
        yield WeightUnit((f"{theirs}.mlp.experts.{their_name}",), parameters, "expert", Dealt())
