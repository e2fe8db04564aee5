"""One micro-batch forward and, if it trains, backward; and what is counted on the way.

Shape suffixes: B rows, T columns, N generated tokens row after row.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import torch
from torch import Tensor

from stepwell.policy.trainers.batch_rows import batch_row, row_tensors
from stepwell.policy.trainers.protocol import NonFinite, TrainBatch
from stepwell.rl.batching import MicroBatch
from stepwell.rl.config import GrpoConfig
from stepwell.rl.losses.aggregation import divisor, token_weight
from stepwell.rl.losses.policy_loss import LossRows, policy_loss
from stepwell.rl.masks import MaskReason


@dataclass
class Tally:
    """Sums over micro-batches."""

    loss_sum: float = 0.0
    loss_divisor: Fraction = Fraction(0)
    """What the loss and the gradients of the whole batch are divided by; 0 if nothing counts."""
    counted_tokens: int = 0
    """Generated tokens of rows that are not masked."""
    clipped_tokens: int = 0
    tokens: int = 0
    padded_tokens: int = 0
    trained_tokens: int = 0
    generated_tokens: int = 0
    difference_sum: float = 0.0
    difference_max: float = 0.0
    kl_sum: float = 0.0
    negative_logprob_sum: float = 0.0
    masks: Counter[MaskReason] = field(default_factory=Counter[MaskReason])

    def add(self, other: "Tally") -> None:
        """Adds another one's sums. Floats are rounded: the order matters; the divisor is exact."""
        self.loss_sum += other.loss_sum
        self.loss_divisor += other.loss_divisor
        self.counted_tokens += other.counted_tokens
        self.clipped_tokens += other.clipped_tokens
        self.tokens += other.tokens
        self.padded_tokens += other.padded_tokens
        self.trained_tokens += other.trained_tokens
        self.generated_tokens += other.generated_tokens
        self.difference_sum += other.difference_sum
        self.difference_max = max(self.difference_max, other.difference_max)
        self.kl_sum += other.kl_sum
        self.negative_logprob_sum += other.negative_logprob_sum
        self.masks.update(other.masks)


class ScoringModel(Protocol):
    """A model as a micro-batch needs it, whichever library computes it."""

    def logprobs(self, ids_BT: Tensor, chosen_N: Tensor, temperature: float) -> Tensor:
        """Log-probability, at a temperature, of chosen tokens given those before them in their row; on the CPU.

        Args:
            ids_BT: token ids, rows padded on the right.
            chosen_N: indices into the flattened `ids_BT`, ascending; never the first column.
            temperature: divides the logits.
        """
        ...

    def positions(self, ids_BT: Tensor, chosen_N: Tensor) -> int:
        """How many positions `logprobs` sends through the model."""
        ...


def run_micro_batch(model: ScoringModel, micro_batch: MicroBatch, batch: TrainBatch, grpo: GrpoConfig) -> Tally:
    """Scores the rows and, if the micro-batch trains, adds their gradient to the model's.

    Raises:
        NonFinite: loss or log-probabilities; no gradient was added.
        DigestMismatch: a row is missing.
    """
    samples = [batch_row(batch, index) for index in micro_batch.samples]
    ids_BT, chosen_N, row_N = row_tensors(samples, micro_batch.length)
    engine_N = torch.tensor([value for sample in samples for value in sample.logprobs], dtype=torch.float32)
    recorded = [batch.recorded[index] for index in micro_batch.samples]
    advantages_B = torch.tensor([row.advantage for row in recorded], dtype=torch.float32)
    weights_B = torch.tensor([token_weight(row, grpo) for row in recorded], dtype=torch.float32)

    with torch.set_grad_enabled(micro_batch.train):
        logprobs_N = model.logprobs(ids_BT, chosen_N, batch.manifest.temperature)
        loss = policy_loss(LossRows(logprobs_N, engine_N, row_N, advantages_B, weights_B), grpo)
    value = loss.loss_sum.item() if micro_batch.train else 0.0
    log_ratio_N = logprobs_N.detach().double() - engine_N
    difference_N = log_ratio_N.abs()
    if not (math.isfinite(value) and bool(torch.isfinite(difference_N).all())):
        raise NonFinite(
            f"step {batch.manifest.step}: the loss is {value}, log-probabilities differ from the engine's by up to "
            f"{float(difference_N.max())}, over the rollouts {[row.stream for row in recorded]}"
        )
    if micro_batch.train:
        loss.loss_sum.backward()

    tokens = sum(row.tokens for row in recorded)
    tally = Tally(
        tokens=tokens,
        padded_tokens=model.positions(ids_BT, chosen_N),
        generated_tokens=len(engine_N),
        difference_sum=float(difference_N.sum()),
        difference_max=float(difference_N.max()),
        kl_sum=float((torch.expm1(log_ratio_N) - log_ratio_N).sum()),
        negative_logprob_sum=-float(logprobs_N.detach().sum(dtype=torch.float64)),
    )
    if micro_batch.train:
        tally.trained_tokens = tokens
        tally.loss_sum = value
        tally.clipped_tokens = loss.clipped_tokens
    for place, row in enumerate(recorded):
        if row.mask is not None:
            continue
        if bool(loss.mismatched_B[place]):
            tally.masks[MaskReason.MISMATCH] += 1
            continue
        if bool(loss.out_of_bounds_B[place]):
            tally.masks[MaskReason.IMPORTANCE] += 1
        tally.loss_divisor += divisor(row, grpo)
        tally.counted_tokens += row.generated_tokens
    return tally
