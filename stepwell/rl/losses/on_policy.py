"""The loss of a ratio that is held at 1 (`force_on_policy_ratio`): a policy gradient, with a correction as weight.

    L_t = -A · exp(p - sg p) · w_t

Its value is -A · w_t, its gradient -A · w_t · grad p. No clip reaches a ratio of 1; how far engine and trainer are from
each other is left to w_t, by seq_mask_tis, tis or icepop.
Source: NeMo-RL `ClippedPGLossFn` as configured in MLPerf Training v6.1.
"""

import torch
from torch import Tensor

from stepwell.rl.losses.token_losses import TokenLosses
from stepwell.rl.losses.token_weights import TokenWeights


def on_policy_losses(logprobs_n: Tensor, advantages_n: Tensor, correction: TokenWeights | None) -> TokenLosses:
    """Without a correction every token weighs 1."""
    losses_n = -advantages_n * (logprobs_n - logprobs_n.detach()).exp()
    if correction is None:
        return TokenLosses(losses_n, torch.zeros_like(losses_n, dtype=torch.bool))
    return TokenLosses(losses_n * correction.weights_n, correction.bounded_n)
