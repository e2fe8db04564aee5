"""CISPO's loss: the bounded ratio is a weight without gradient, so that every token keeps a part in the update.

    L_t = -A · sg clip(r_t, 1 - low, 1 + high) · p,   r_t = exp(p - q)

Source: arXiv 2506.13585 (MiniMax-M1), equations 4 and 5, which leaves out the lower bound; arXiv 2510.13786 (ScaleRL)
bounds the ratio by 5.
"""

from torch import Tensor

from stepwell.rl.losses.token_losses import TokenLosses


def cispo_losses(
    logprobs_n: Tensor, engine_logprobs_n: Tensor, advantages_n: Tensor, low: float | None, high: float
) -> TokenLosses:
    """The value is a weighted log-probability, not a ratio: it is no estimate of what is gained."""
    ratio_n = (logprobs_n.detach() - engine_logprobs_n).exp()
    weights_n = ratio_n.clamp(min=None if low is None else 1.0 - low, max=1.0 + high)
    return TokenLosses(-advantages_n * weights_n * logprobs_n, weights_n != ratio_n)
