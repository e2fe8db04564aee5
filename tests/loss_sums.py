"""Our losses on rollouts of `tests.loss_formulas`: in float64, in as many micro-batches as a test wants."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from stepwell.rl.batching import BatchRow
from stepwell.rl.config import GrpoConfig
from stepwell.rl.losses.aggregation import divisor, token_weight
from stepwell.rl.losses.policy_loss import LossRows, PolicyLoss, policy_loss
from tests.loss_formulas import Rollout, Token


@dataclass(frozen=True)
class Sums:
    """Over micro-batches."""

    loss_sum: float
    divisor: Fraction
    gradient: Tensor
    """Of the loss sum, by each token in the order of the rollouts."""
    parts: list[PolicyLoss]

    @property
    def loss(self) -> float:
        """Of the batch."""
        return self.loss_sum / float(self.divisor or 1)


def sums_of(rollouts: Sequence[Rollout], config: GrpoConfig, cuts: Sequence[Sequence[int]] | None = None) -> Sums:
    """What micro-batches add up to.

    Args:
        rollouts: the batch.
        config: the algorithm.
        cuts: places of rows, by micro-batch; None: one for all.
    """
    rows = [(each, row) for each in rollouts for row in each.rows]
    recorded = [BatchRow("rollout", 99, len(row), "content", None, each.advantage, each.length) for each, row in rows]
    starts = [sum(len(row) for _, row in rows[:place]) for place in range(len(rows))]
    tokens = [token for _, row in rows for token in row]
    own = torch.tensor([p for p, _ in tokens], dtype=torch.float64, requires_grad=True)
    parts: list[PolicyLoss] = []
    divided, total = Fraction(0), 0.0
    for places in [range(len(rows))] if cuts is None else cuts:
        chosen = torch.tensor([starts[place] + t for place in places for t in range(len(rows[place][1]))])
        part = policy_loss(_tensors(own, chosen, tokens, [recorded[place] for place in places], config), config)
        part.loss_sum.backward()
        parts.append(part)
        total += part.loss_sum.item()
        for place, is_out in zip(places, part.mismatched_B.tolist(), strict=True):
            divided += 0 if is_out else divisor(recorded[place], config)
    assert own.grad is not None
    return Sums(total, divided, own.grad, parts)


def _tensors(
    own: Tensor, chosen: Tensor, tokens: Sequence[Token], rows: Sequence[BatchRow], config: GrpoConfig
) -> LossRows:
    engine = torch.tensor([q for _, q in tokens], dtype=torch.float64)
    return LossRows(
        logprobs_N=own[chosen],
        engine_logprobs_N=engine[chosen],
        row_N=torch.tensor([place for place, row in enumerate(rows) for _ in range(row.generated_tokens)]),
        advantages_B=torch.tensor([row.advantage for row in rows], dtype=torch.float64),
        weights_B=torch.tensor([token_weight(row, config) for row in rows], dtype=torch.float64),
    )
