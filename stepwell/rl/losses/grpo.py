"""GRPO's loss with a ratio a token and bounds that may differ.

    L_t = max(-A · r_t, -A · clip(r_t, 1 - low, 1 + high)),   r_t = exp(p - q)

Sources: arXiv 2402.03300 (GRPO, low = high), 2503.14476 (DAPO, "clip-higher": high > low).
"""

import torch
from torch import Tensor

from stepwell.rl.losses.token_losses import TokenLosses


def grpo_losses(
    logprobs_n: Tensor, engine_logprobs_n: Tensor, advantages_n: Tensor, low: float, high: float
) -> TokenLosses:
    """Pessimistic: the clip takes the gradient of a token only where the ratio has gone the way of its advantage."""
    ratio_n = (logprobs_n - engine_logprobs_n).exp()
    free_n = -advantages_n * ratio_n
    bounded_n = -advantages_n * ratio_n.clamp(1.0 - low, 1.0 + high)
    return TokenLosses(torch.maximum(free_n, bounded_n), bounded_n > free_n)
