"""The mask by mismatch: a sequence that trainer and engine see too differently counts for nothing, neither in the loss
nor in its denominator.

    masked if the mean over the row of exp|sg p - q| is above `mismatch_max`

Source: NeMo-RL, the sequence mask by log-probability error; 2 in MLPerf Training v6.1.
"""

from torch import Tensor

from stepwell.rl.losses.row_means import row_means


def mismatched_rows(log_ratio_N: Tensor, row_N: Tensor, lengths_B: Tensor, limit: float) -> Tensor:
    """Bool, one a row."""
    return row_means(log_ratio_N.abs().exp(), row_N, lengths_B) > limit
