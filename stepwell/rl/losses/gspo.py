"""GSPO's loss: one ratio a sequence, the geometric mean of its tokens', clipped as a whole.

    L_t = max(-A · s, -A · clip(s, 1 - low, 1 + high)),   s = exp(mean over the row of (p - q))

the same for each token of the row, so that `seq_mean_token_mean` gives the paper's mean over sequences. Here a sequence
is a row: tokens of another row of the same rollout had another context.
Source: arXiv 2507.18071, equations 5 and 7; its bounds are 3e-4 and 4e-4.
"""

import torch
from torch import Tensor

from stepwell.rl.losses.row_means import row_means
from stepwell.rl.losses.token_losses import TokenLosses


def gspo_losses(
    log_ratio_n: Tensor, row_n: Tensor, lengths_B: Tensor, advantages_B: Tensor, low: float, high: float
) -> TokenLosses:
    """Of the tokens of whole rows.

    Args:
        log_ratio_n: p - q, with gradient.
        row_n: row of each token.
        lengths_B: tokens of each row.
        advantages_B: one a row.
        low, high: bounds of the ratio, as distances from 1.
    """
    ratio_B = row_means(log_ratio_n, row_n, lengths_B).exp()
    free_B = -advantages_B * ratio_B
    bounded_B = -advantages_B * ratio_B.clamp(1.0 - low, 1.0 + high)
    return TokenLosses(torch.maximum(free_B, bounded_B)[row_n], (bounded_B > free_B)[row_n])
