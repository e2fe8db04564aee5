"""How a Hugging Face model reads and writes the slots: its cache, and its attention.

Shape suffixes: N rows of the step, Q new positions, T positions that are read, H key-value heads, G queries a
key-value head, D head size.
"""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.nn import functional
from transformers import AttentionInterface
from transformers.cache_utils import Cache, CacheLayerMixin

from stepwell.policy.engines.slots import Slots

ATTENTION = "stepwell_slots"
"""Name under which transformers knows the attention below; importing this module registers it."""


@dataclass(frozen=True)
class SlotStep:
    """Which rows and positions the next forward pass writes."""

    rows_N: torch.Tensor
    positions_NQ: torch.Tensor
    """The scratch position where a row has no token."""
    read: int
    """T: positions that are read of each row."""
    in_front: bool
    """True if the rows are the first N, in order: they are then read in place, without a copy."""


class SlotLayer(CacheLayerMixin):
    """One layer's view of the slots."""

    is_sliding = False

    def __init__(self, owner: "SlotCache", layer: int) -> None:
        super().__init__()
        self._owner = owner
        storage = owner.slots.storage_L2SHTD
        self.keys, self.values = storage[layer, 0], storage[layer, 1]
        self.is_initialized = True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to do: the storage stands from the start."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Writes the step's keys and values (each N, H, Q, D), and returns all that the step reads (N, H, T, D)."""
        step = self._owner.step
        if step is None:
            raise RuntimeError("the forward pass has no SlotStep: set `step` before it")
        return (
            _write_and_read(cast(torch.Tensor, self.keys), key_states, step),
            _write_and_read(cast(torch.Tensor, self.values), value_states, step),
        )

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Positions read, and their offset."""
        return (self._owner.step.read if self._owner.step else query_length), 0

    def get_seq_length(self) -> int:
        """0: rows differ, and every step brings its own positions and mask."""
        return 0

    def get_max_length(self) -> int:
        """Positions a row can hold."""
        return self._owner.slots.shape.max_context


class SlotCache(Cache):
    """The slots as transformers' models want a cache."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.step: SlotStep | None = None
        super().__init__(layers=[SlotLayer(self, layer) for layer in range(slots.shape.layers)])


def _write_and_read(stored_SHTD: torch.Tensor, new_NHQD: torch.Tensor, step: SlotStep) -> torch.Tensor:
    stored_SHTD[step.rows_N[:, None], :, step.positions_NQ] = new_NHQD.transpose(1, 2)
    if step.in_front:
        return stored_SHTD[: len(step.rows_N), :, : step.read]
    return stored_SHTD[:, :, : step.read].index_select(0, step.rows_N)


def visible_mask(positions_NQ: torch.Tensor, read: int, dtype: torch.dtype) -> torch.Tensor:
    """Additive mask (N, 1, Q, T): each position sees those up to itself, and at least the first."""
    columns_T = torch.arange(read, device=positions_NQ.device)
    hidden_NQT = columns_T > positions_NQ[..., None]
    return torch.zeros(hidden_NQT.shape, dtype=dtype, device=hidden_NQT.device).masked_fill_(hidden_NQT, float("-inf"))[
        :, None
    ]


def slot_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **unused: Any,
) -> tuple[torch.Tensor, None]:
    """Softmax attention with grouped queries under an additive mask, which every step brings.

    A decode step (one query a row) is a batched matrix product over the row's own keys, so that no key-value head is
    repeated in memory; longer queries take torch's fused kernel.

    Raises:
        NotImplementedError: the model wants a variant (soft cap, sinks, position bias) that this does not compute.
    """
    wanted = [name for name in ("softcap", "s_aux", "position_bias") if unused.get(name) is not None]
    if wanted or attention_mask is None or dropout:
        raise NotImplementedError(f"attention with {', '.join(wanted) or 'no mask or dropout'} is not supported")
    rows, heads, queries, size = query.shape
    kv_heads = key.shape[1]
    scale = scaling if scaling is not None else size**-0.5
    if queries > 1:
        grouped = kv_heads != heads
        out = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, scale=scale, enable_gqa=grouped
        )
        return out.transpose(1, 2).contiguous(), None
    grouped_NHGD = query.reshape(rows, kv_heads, heads // kv_heads, size)
    scores_NHGT = torch.matmul(grouped_NHGD * scale, key.transpose(2, 3)) + attention_mask
    weights_NHGT = torch.softmax(scores_NHGT, dim=-1, dtype=torch.float32).to(value.dtype)
    return torch.matmul(weights_NHGT, value).reshape(rows, 1, heads, size), None


AttentionInterface.register(ATTENTION, slot_attention)
