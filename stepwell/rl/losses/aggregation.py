"""From token losses to the loss of a batch: a weighted sum over a divisor, both sums over rows, so that micro-batches
and ranks add up to the batch however it is cut. The divisor is exact.

    token_mean               sum over tokens / tokens                                     (DAPO, arXiv 2503.14476)
    seq_mean_token_mean      mean over rollouts of the mean over their tokens             (GRPO, arXiv 2402.03300)
    seq_mean_token_sum_norm  mean over rollouts of the sum over their tokens / a constant (Dr. GRPO, arXiv 2503.20783)

A rollout of several rows is one sequence here: its tokens share its weight. Rows that are masked are left out of both
sums; of a rollout that loses some of its rows, the share of its tokens that is left counts. The names are verl's, but
for hyphens.
"""

from fractions import Fraction

from stepwell.rl.batching import BatchRow
from stepwell.rl.config import GrpoConfig


def token_weight(row: BatchRow, config: GrpoConfig) -> float:
    """What the loss of each token of a row is multiplied with in the sum."""
    return 1.0 / row.rollout_generated_tokens if config.loss_agg_mode == "seq_mean_token_mean" else 1.0


def divisor(row: BatchRow, config: GrpoConfig) -> Fraction:
    """What a row that counts adds to what the batch's sum is divided by."""
    if config.loss_agg_mode == "token_mean":
        return Fraction(row.generated_tokens)
    share = Fraction(row.generated_tokens, row.rollout_generated_tokens)
    if config.loss_agg_mode == "seq_mean_token_mean":
        return share
    assert config.loss_scale_factor is not None  # GrpoConfig asks for it
    return share * config.loss_scale_factor
