"""The router of a mixture of experts, as transformers computes it. Megatron-core 0.16's own looks up a name that is
only there with Transformer Engine."""

import torch
from megatron.core.transformer.moe.router import TopKRouter
from torch import Tensor


class PlainRouter(TopKRouter):
    """Scores each expert by one matrix product in the dtype of the hidden states."""

    def gating(self, input: Tensor) -> Tensor:
        """Logits of experts, of hidden states in any shape."""
        return torch.nn.functional.linear(input, self.weight)
