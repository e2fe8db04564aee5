"""From the tallies of micro-batches to what a step says of itself: the same for every backend."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from stepwell.policy.trainers.micro_batches import Tally
from stepwell.policy.trainers.protocol import StepResult
from stepwell.rl.batching import BatchManifest


@dataclass(frozen=True)
class Update:
    """What an update was made with."""

    norm: float
    """Global norm of the gradients before clipping."""
    learning_rate: float
    """Of this step."""


def total_of(manifest: BatchManifest, tallies: Mapping[int, Tally]) -> Tally:
    """The sum over all micro-batches, in the manifest's order, whoever computed them."""
    total = Tally(masks=Counter(manifest.mask_counts()))
    for index in range(len(manifest.micro_batches)):
        total.add(tallies[index])
    return total


def step_result(
    manifest: BatchManifest, total: Tally, update: Update, *, forward_backward_s: float, optimiser_s: float
) -> StepResult:
    """What one training step did."""
    generated = max(1, total.generated_tokens)
    return StepResult(
        step=manifest.step,
        version=manifest.version,
        loss=total.loss_sum / (float(total.loss_divisor) or 1.0),
        grad_norm=update.norm,
        learning_rate=update.learning_rate,
        tokens=total.tokens,
        padded_tokens=total.padded_tokens,
        trained_tokens=total.trained_tokens,
        generated_tokens=total.generated_tokens,
        loss_tokens=total.counted_tokens,
        mismatch_mean=total.difference_sum / generated,
        mismatch_max=total.difference_max,
        kl_mean=total.kl_sum / generated,
        clip_fraction=total.clipped_tokens / max(1, total.counted_tokens),
        entropy=total.negative_logprob_sum / generated,
        mask_counts=dict(sorted(total.masks.items())),
        forward_backward_s=forward_backward_s,
        optimiser_s=optimiser_s,
    )
