"""The GRPO loss on the log-probabilities of generated tokens. The only torch under `stepwell/rl/`.

Shape suffixes: N generated tokens of a micro-batch, row after row; n those that train; B rows.

For token t of row i, with p the trainer's log-probability and q the engine's (both under the sampling temperature) and
sg the stop of the gradient:
    forced on-policy:  L_t = -A_i · w_t · exp(p - sg p),   w_t = sg exp(p - q) · k_i   (importance), or 1
    otherwise:         L_t = max(-A_i · r_t, -A_i · clip(r_t, 1 - low, 1 + high)),   r_t = exp(p - q)
with k_i = 1 if the geometric mean of sg exp(p - q) over row i is in bounds, else 0. A row whose mean of
exp|sg p - q| is above `mismatch_max` counts for nothing. The loss is the sum over tokens by the number of tokens of
rows that count, over the whole batch (token level); here only the sums, so that micro-batches add up.
Source: NeMo-RL `ClippedPGLossFn` as configured in MLPerf Training v6.1.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from stepwell.rl.config import GrpoConfig
from stepwell.rl.samples import MissingLogprob


@dataclass(frozen=True)
class GrpoLoss:
    """Sums over a micro-batch."""

    loss_sum: Tensor
    """Scalar: sum of the token losses; divide by `counted_tokens` of the whole batch."""
    counted_tokens: int
    """Tokens of rows that are not masked by mismatch."""
    clipped_tokens: int
    """Tokens for which the clip decided."""
    mismatched_B: Tensor
    """Bool: masked by mismatch."""
    out_of_bounds_B: Tensor
    """Bool: weight 0 by the importance bounds; not those masked by mismatch."""


def grpo_loss(
    logprobs_N: Tensor, engine_logprobs_N: Tensor, row_N: Tensor, advantages_B: Tensor, config: GrpoConfig
) -> GrpoLoss:
    """Loss sums of a micro-batch.

    Args:
        logprobs_N: the trainer's, with gradient.
        engine_logprobs_N: the engine's.
        row_N: row of each token, int64; every row has at least one.
        advantages_B: one a row.
        config: ratio, bounds, masks.

    Raises:
        MissingLogprob: a log-probability of the engine is not finite.
    """
    if not bool(torch.isfinite(engine_logprobs_N).all()):
        raise MissingLogprob("the engine's log-probabilities hold a value that is not finite")
    rows = advantages_B.shape[0]
    tokens_B = torch.zeros_like(advantages_B).index_add_(0, row_N, torch.ones_like(engine_logprobs_N))
    log_ratio_N = logprobs_N.detach() - engine_logprobs_N

    mismatched_B = torch.zeros(rows, dtype=torch.bool)
    if config.mismatch_max is not None:
        mismatched_B = _row_mean(log_ratio_N.abs().exp(), row_N, tokens_B) > config.mismatch_max
    out_of_bounds_B = torch.zeros(rows, dtype=torch.bool)
    if config.importance == "seq_mask_tis":
        assert config.importance_min is not None  # GrpoConfig fills it, and the next
        assert config.importance_max is not None
        geometric_B = _row_mean(log_ratio_N, row_N, tokens_B).exp()
        in_bounds_B = (geometric_B >= config.importance_min) & (geometric_B <= config.importance_max)
        out_of_bounds_B = ~in_bounds_B & ~mismatched_B

    counted_N = ~mismatched_B[row_N]
    trained_N = counted_N & ~out_of_bounds_B[row_N]
    # A masked row is cut out before any exponential: where its ratio overflows, 0 times its gradient is no number.
    selected_n = trained_N.nonzero().squeeze(1)
    logprobs_n, log_ratio_n = logprobs_N[selected_n], log_ratio_N[selected_n]
    advantages_n = advantages_B[row_N[selected_n]]
    if config.force_on_policy_ratio:
        losses_n = -advantages_n * (logprobs_n - logprobs_n.detach()).exp()
        if config.importance == "seq_mask_tis":
            losses_n = losses_n * log_ratio_n.exp()
        clipped_tokens = 0
    else:
        assert config.clip_low is not None  # GrpoConfig fills it, and the next
        assert config.clip_high is not None
        ratio_n = (logprobs_n - engine_logprobs_N[selected_n]).exp()
        free_n = -advantages_n * ratio_n
        bounded_n = -advantages_n * ratio_n.clamp(1.0 - config.clip_low, 1.0 + config.clip_high)
        losses_n = torch.maximum(free_n, bounded_n)
        clipped_tokens = int((bounded_n > free_n).sum())
    return GrpoLoss(
        loss_sum=losses_n.sum(),
        counted_tokens=int(counted_N.sum()),
        clipped_tokens=clipped_tokens,
        mismatched_B=mismatched_B,
        out_of_bounds_B=out_of_bounds_B,
    )


def _row_mean(values_N: Tensor, row_N: Tensor, tokens_B: Tensor) -> Tensor:
    return torch.zeros_like(tokens_B).index_add_(0, row_N, values_N) / tokens_B
