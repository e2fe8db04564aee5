"""A micro-batch's loss as a recipe says it: masks, then one loss, then the weighted sum."""

from dataclasses import dataclass

import torch
from torch import Tensor

from stepwell.rl.config import GrpoConfig
from stepwell.rl.losses.cispo import cispo_losses
from stepwell.rl.losses.grpo import grpo_losses
from stepwell.rl.losses.gspo import gspo_losses
from stepwell.rl.losses.icepop import icepop_weights
from stepwell.rl.losses.mismatch import mismatched_rows
from stepwell.rl.losses.on_policy import on_policy_losses
from stepwell.rl.losses.row_means import row_lengths
from stepwell.rl.losses.seq_mask_tis import rows_in_bounds, seq_mask_tis_weights
from stepwell.rl.losses.tis import tis_weights
from stepwell.rl.losses.token_losses import TokenLosses
from stepwell.rl.losses.token_weights import TokenWeights
from stepwell.rl.samples import MissingLogprob


@dataclass(frozen=True)
class LossRows:
    """Generated tokens of a micro-batch; every row has at least one."""

    logprobs_N: Tensor
    """The trainer's, with gradient."""
    engine_logprobs_N: Tensor
    row_N: Tensor
    """Row of each token, int64."""
    advantages_B: Tensor
    weights_B: Tensor
    """Of each token of a row in the sum: `stepwell.rl.losses.aggregation.token_weight`."""


@dataclass(frozen=True)
class PolicyLoss:
    """Sums over a micro-batch."""

    loss_sum: Tensor
    """Scalar: weighted sum of the token losses; the batch's is divided by the sum of
    `stepwell.rl.losses.aggregation.divisor` over its rows that count."""
    counted_tokens: int
    """Tokens of rows that are not masked by mismatch."""
    clipped_tokens: int
    """Tokens over which a bound decided: see `TokenLosses.bounded_n`."""
    mismatched_B: Tensor
    """Bool: masked by mismatch."""
    out_of_bounds_B: Tensor
    """Bool: weight 0 by the bounds of seq_mask_tis; not those masked by mismatch."""


def policy_loss(rows: LossRows, config: GrpoConfig) -> PolicyLoss:
    """Loss sums of a micro-batch.

    Raises:
        MissingLogprob: a log-probability of the engine is not finite.
    """
    if not bool(torch.isfinite(rows.engine_logprobs_N).all()):
        raise MissingLogprob("the engine's log-probabilities hold a value that is not finite")
    lengths_B = row_lengths(rows.row_N, rows.advantages_B)
    log_ratio_N = rows.logprobs_N.detach() - rows.engine_logprobs_N
    nobody_B = torch.zeros_like(lengths_B, dtype=torch.bool)
    mismatched_B = out_of_bounds_B = nobody_B
    if config.mismatch_max is not None:
        mismatched_B = mismatched_rows(log_ratio_N, rows.row_N, lengths_B, config.mismatch_max)
    if config.importance == "seq_mask_tis":
        low, high = _importance_bounds(config)
        in_bounds_B = rows_in_bounds(log_ratio_N, rows.row_N, lengths_B, low, high)
        out_of_bounds_B = ~in_bounds_B & ~mismatched_B

    # A masked row is cut out before any exponential: where its ratio overflows, 0 times its gradient is no number.
    trained_N = ~(mismatched_B | out_of_bounds_B)[rows.row_N]
    selected_n = trained_N.nonzero().squeeze(1)
    found = _token_losses(rows, selected_n, lengths_B, log_ratio_N[selected_n], config)
    return PolicyLoss(
        loss_sum=(found.losses_n * rows.weights_B[rows.row_N[selected_n]]).sum(),
        counted_tokens=int((~mismatched_B)[rows.row_N].sum()),
        clipped_tokens=int(found.bounded_n.sum()),
        mismatched_B=mismatched_B,
        out_of_bounds_B=out_of_bounds_B,
    )


def _token_losses(
    rows: LossRows, selected_n: Tensor, lengths_B: Tensor, log_ratio_n: Tensor, config: GrpoConfig
) -> TokenLosses:
    """By the recipe's loss, of the tokens that train."""
    logprobs_n, engine_logprobs_n = rows.logprobs_N[selected_n], rows.engine_logprobs_N[selected_n]
    row_n = rows.row_N[selected_n]
    advantages_n = rows.advantages_B[row_n]
    if config.force_on_policy_ratio:
        return on_policy_losses(logprobs_n, advantages_n, _correction(log_ratio_n, config))
    assert config.clip_high is not None  # GrpoConfig fills it
    if config.loss == "cispo":
        return cispo_losses(logprobs_n, engine_logprobs_n, advantages_n, config.clip_low, config.clip_high)
    assert config.clip_low is not None  # GrpoConfig fills it, but for cispo
    if config.loss == "gspo":
        with_gradient_n = logprobs_n - engine_logprobs_n
        return gspo_losses(with_gradient_n, row_n, lengths_B, rows.advantages_B, config.clip_low, config.clip_high)
    return grpo_losses(logprobs_n, engine_logprobs_n, advantages_n, config.clip_low, config.clip_high)


def _correction(log_ratio_n: Tensor, config: GrpoConfig) -> TokenWeights | None:
    if config.importance == "seq_mask_tis":
        return seq_mask_tis_weights(log_ratio_n)
    if config.importance == "icepop":
        low, high = _importance_bounds(config)
        return icepop_weights(log_ratio_n, low, high)
    if config.importance == "tis":
        assert config.importance_max is not None  # GrpoConfig fills it
        return tis_weights(log_ratio_n, config.importance_min, config.importance_max)
    return None


def _importance_bounds(config: GrpoConfig) -> tuple[float, float]:
    assert config.importance_min is not None  # GrpoConfig fills it, and the next
    assert config.importance_max is not None
    return config.importance_min, config.importance_max
