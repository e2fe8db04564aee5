"""How a model is laid out over the ranks of a Megatron trainer, and whether it can be."""

import math
from dataclasses import dataclass
from typing import Literal

Across = Literal["none", "tensor", "expert"]
"""Among which ranks a tensor is cut. `none`: every rank has the whole of it."""


@dataclass(frozen=True)
class Counts:
    """What a layout must divide."""

    heads: int
    kv_heads: int
    ffn_size: int
    """Of a dense layer; 0: the model has none."""
    vocabulary: int
    experts: int = 0
    """Of a layer; 0: the model has none."""


@dataclass(frozen=True)
class Experts:
    """The mixture of a mixture-of-experts model."""

    count: int
    active: int
    """Experts that see a token."""
    ffn_size: int
    """Width of one expert."""
    normalised: bool
    """Whether the weights of the chosen experts are made to sum to 1."""
    layers: frozenset[int]
    """Which layers have experts, from 0; the others are dense."""


@dataclass(frozen=True)
class ModelShape:
    """What Megatron is told of a model: no more than llama, qwen3 and qwen3-moe need."""

    layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    head_size: int
    ffn_size: int
    vocabulary: int
    context: int
    norm_epsilon: float
    rope_base: float
    tied: bool
    """The output layer is the embedding."""
    qk_norm: bool
    """Queries and keys are normalised by head."""
    experts: Experts | None = None

    @property
    def counts(self) -> Counts:
        """What a layout must divide."""
        experts = self.experts.count if self.experts is not None else 0
        return Counts(self.heads, self.kv_heads, self.ffn_size, self.vocabulary, experts)


@dataclass(frozen=True)
class Layout:
    """Ranks in a grid: rank = replica · tensor + part. The parts of a replica compute a micro-batch together."""

    tensor: int = 1
    """Parts into which heads, feed-forward layers and vocabulary are cut."""
    data: int = 1
    """Replicas, among which micro-batches are dealt."""
    expert: int = 1
    """Parts into which a layer's experts are dealt; all within one replica, so it divides `tensor`."""

    @property
    def ranks(self) -> int:
        """Processes."""
        return self.tensor * self.data

    def replica(self, rank: int) -> int:
        """The replica that a rank belongs to."""
        return rank // self.tensor

    def parts(self, across: Across) -> int:
        """Into how many parts a tensor is cut."""
        return {"none": 1, "tensor": self.tensor, "expert": self.expert}[across]

    def part(self, across: Across, rank: int) -> int:
        """Which part of a tensor a rank holds."""
        return rank % self.parts(across)

    def refusal(self, counts: Counts) -> str:
        """Why a model cannot be cut like this: which key, its value, and what is allowed. Empty if it can."""
        for what, count in (
            ("key-value heads", counts.kv_heads),
            ("attention heads", counts.heads),
            ("units of a feed-forward layer", counts.ffn_size),
            ("tokens of the vocabulary", counts.vocabulary),
        ):
            if count % self.tensor:
                allowed = _divisors(counts.kv_heads, counts.heads, counts.ffn_size, counts.vocabulary)
                return (
                    f"trainer.tensor_parallel is {self.tensor}, which does not divide the model's {count} {what}; "
                    f"allowed: {allowed}"
                )
        if self.expert > 1 and not counts.experts:
            return f"trainer.expert_parallel is {self.expert}, but the model has no experts: leave it out"
        if self.expert > 1 and counts.experts % self.expert:
            return (
                f"trainer.expert_parallel is {self.expert}, which does not divide the model's {counts.experts} "
                f"experts; allowed: {_divisors(counts.experts, self.tensor)}"
            )
        return ""


def _divisors(*counts: int) -> str:
    common = math.gcd(*counts)
    return ", ".join(str(one) for one in range(1, common + 1) if common % one == 0)
