"""Attention over sequences that are packed one after another, without padding, on any device.

Megatron's own attention without Transformer Engine refuses packed sequences.

Shape suffixes: T positions, A attention heads of this rank, K key-value heads of this rank, D head size.
"""

from typing import Any

import torch
from megatron.core.packed_seq_params import PackedSeqParams
from megatron.core.transformer.module import MegatronModule
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


class PackedAttention(MegatronModule):
    """Causal attention within each sequence, without parameters."""

    def __init__(self, config: TransformerConfig, layer_number: int, **_given: Any) -> None:
        """Made by Megatron, which also gives what does not matter here: masks, dropout, groups of ranks."""
        super().__init__(config)
        self.layer_number = layer_number

    def forward(
        self,
        query_TAD: Tensor,
        key_TKD: Tensor,
        value_TKD: Tensor,
        attention_mask: Tensor | None,
        attn_mask_type: object = None,
        attention_bias: Tensor | None = None,
        packed_seq_params: PackedSeqParams | None = None,
    ) -> Tensor:
        """Attends, and lays the heads side by side: (T, A·D)."""
        assert packed_seq_params is not None  # the only way in which the trainer calls the model
        lengths: list[int] = packed_seq_params.cu_seqlens_q.diff().tolist()
        pieces = [
            scaled_dot_product_attention(
                query.transpose(0, 1)[None],
                key.transpose(0, 1)[None],
                value.transpose(0, 1)[None],
                is_causal=True,
                enable_gqa=True,
            )[0].transpose(0, 1)
            for query, key, value in zip(
                query_TAD.split(lengths), key_TKD.split(lengths), value_TKD.split(lengths), strict=True
            )
        ]
        return torch.cat(pieces).flatten(1)
