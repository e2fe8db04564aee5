"""The norm of llama and qwen3, as transformers computes it. Megatron's own refuses to work sequence-parallel, although
each position is normalised alone."""

import torch
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import Tensor


class RootMeanSquare(torch.nn.Module):
    """Divides by the root of the mean square in float32, then scales in the dtype of its input."""

    def __init__(self, config: TransformerConfig, hidden_size: int, eps: float = 1e-5) -> None:
        """Made by Megatron."""
        super().__init__()
        del config
        self.weight = torch.nn.Parameter(torch.ones(hidden_size))
        self._epsilon = eps

    def forward(self, hidden: Tensor) -> Tensor:
        """Normalises the last dimension."""
        wide = hidden.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self._epsilon)
        return self.weight * scaled.to(hidden.dtype)
