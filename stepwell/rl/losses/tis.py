"""Truncated importance sampling: a token weighs trainer over engine, up to a bound.

    w_t = clip(exp(sg p - q), min, max),   min = 0 unless given

Source: Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL training"; NeMo-RL
`truncated_importance_sampling_type: tis`, which has the lower bound too.
"""

from torch import Tensor

from stepwell.rl.losses.token_weights import TokenWeights


def tis_weights(log_ratio_n: Tensor, low: float | None, high: float) -> TokenWeights:
    """Of sg p - q. A ratio that overflows weighs as much as the bound."""
    ratio_n = log_ratio_n.exp()
    weights_n = ratio_n.clamp(min=low, max=high)
    return TokenWeights(weights_n, weights_n != ratio_n)
