"""Supervised training of any policy: the trainer's own step, on rows that are all right.

With advantage 1 for every row and the ratio held at 1, the gradient of the loss of `stepwell.rl.losses` is that of the
negative log-likelihood of the generated tokens: so a warm-up has the trainer's packing, its checks, its optimiser, and
its promise that equal rows, seed, settings and numeric environment give equal bits.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from stepwell.policy.trainers.protocol import StepResult, TrainBatch, Trainer
from stepwell.recipe.policies import WarmUpSection
from stepwell.rl.batching import BatchManifest, ManifestSample, pack, rows_of
from stepwell.rl.config import GrpoConfig, PackingConfig
from stepwell.rl.samples import TrainSample

LIKELIHOOD = GrpoConfig(importance="none", mismatch_max=None)
"""What a trainer must be made with, for its step to be supervised."""
_TOLD_EVERY = 10
"""Steps between two lines of the log."""
_LAST = 10
"""Steps over which the last loss is taken."""

_log = logging.getLogger(__name__)


def supervise(
    trainer: Trainer, rows: Sequence[TrainSample], warm_up: WarmUpSection, packing: PackingConfig, seed: int
) -> dict[str, float]:
    """Trains from version 0 on; the trainer's version is then the number of steps.

    Args:
        trainer: At version 0, made with `LIKELIHOOD` and the warm-up's optimiser.
        rows: Generated tokens are those to learn.
        warm_up: Steps, and rows in each.
        packing: How a step is cut.
        seed: Of the order.

    Returns:
        `steps`; `loss`, the mean negative log-likelihood of a token in nats over the last steps, and `first_loss`;
        `rows`, and `tokens` that went through the model.

    Raises:
        NonFinite: loss or gradient.
        TrainerClosed: the trainer was closed meanwhile.
    """
    began = time.monotonic()
    results: list[StepResult] = []
    for step, chosen in enumerate(islice(_dealt(rows, warm_up.demonstrations, seed), warm_up.steps)):
        results.append(trainer.step(_batch(step, chosen, packing)))
        if step % _TOLD_EVERY == 0 or step + 1 == warm_up.steps:
            told = (step + 1, warm_up.steps, results[-1].entropy, time.monotonic() - began)
            _log.info("warm-up: step %d of %d, loss %.3f, %.0f s", *told)
    return {
        "steps": float(len(results)),
        # The rows' own log-probabilities stand for nothing: what the trainer calls entropy is the likelihood's loss.
        "loss": sum(result.entropy for result in results[-_LAST:]) / len(results[-_LAST:]),
        "first_loss": results[0].entropy,
        "rows": float(len(rows)),
        "tokens": float(sum(result.tokens for result in results)),
    }


def _dealt(rows: Sequence[TrainSample], count: int, seed: int) -> Iterator[list[TrainSample]]:
    """Endless batches: every row once before any twice, each time in another order."""
    random = Random(seed)
    waiting: list[TrainSample] = []
    while True:
        while len(waiting) < count:
            waiting += random.sample(rows, len(rows))
        yield waiting[:count]
        del waiting[:count]


def _batch(step: int, rows: Sequence[TrainSample], packing: PackingConfig) -> TrainBatch:
    samples = tuple(
        ManifestSample(
            stream=f"demonstration/{place}",
            prompt=place,
            sample=0,
            turns=0,
            tokens=len(row.token_ids),
            generated_tokens=sum(row.generated),
            content=row.content_digest(),
            reward=1.0,
            mask=None,
            advantage=1.0,
        )
        for place, row in enumerate(rows)
    )
    manifest = BatchManifest(
        step=step,
        parent_version=step,
        version=step + 1,
        temperature=1.0,
        samples=samples,
        micro_batches=pack(rows_of(samples), packing),
    )
    return TrainBatch(manifest=manifest, samples=tuple(rows))
