"""seq-mask-tis: a sequence whose geometric mean of trainer over engine is out of bounds weighs 0, a token of the others
weighs trainer over engine, without a bound.

    w_t = exp(sg p - q) if exp(mean over the row of (sg p - q)) is within [min, max], else 0

A row of weight 0 stays in the denominator.
Source: NeMo-RL `truncated_importance_sampling_type: seq-mask-tis`, bounds 0.999 and 1.002 in MLPerf Training v6.1.
"""

import torch
from torch import Tensor

from stepwell.rl.losses.row_means import row_means
from stepwell.rl.losses.token_weights import TokenWeights


def rows_in_bounds(log_ratio_N: Tensor, row_N: Tensor, lengths_B: Tensor, low: float, high: float) -> Tensor:
    """Bool, one a row: its geometric mean is within the bounds."""
    geometric_B = row_means(log_ratio_N, row_N, lengths_B).exp()
    return (geometric_B >= low) & (geometric_B <= high)


def seq_mask_tis_weights(log_ratio_n: Tensor) -> TokenWeights:
    """Of the tokens of rows within the bounds: no bound decides over a token alone."""
    return TokenWeights(log_ratio_n.exp(), torch.zeros_like(log_ratio_n, dtype=torch.bool))
