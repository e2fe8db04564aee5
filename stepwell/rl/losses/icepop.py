"""IcePop: a token whose trainer over engine is out of bounds has no part in the update; others weigh as much.

    w_t = exp(sg p - q) if it is within [min, max], else 0

A token of weight 0 stays in the denominator.
Source: arXiv 2510.18855 (Ring-1T, "Every step evolves"), with bounds 0.5 and 5; there the mean is over sequences
(`loss_agg_mode = "seq_mean_token_mean"`). With one update a batch the clipped ratio beside it is 1.
"""

import torch
from torch import Tensor

from stepwell.rl.losses.token_weights import TokenWeights


def icepop_weights(log_ratio_n: Tensor, low: float, high: float) -> TokenWeights:
    """Of sg p - q."""
    ratio_n = log_ratio_n.exp()
    out_n = (ratio_n < low) | (ratio_n > high)
    return TokenWeights(torch.where(out_n, 0.0, ratio_n), out_n)
