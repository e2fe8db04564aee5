"""What a trainer is given and what it answers, whichever library computes it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from stepwell.events.numbers import WeightDigests
from stepwell.policy.weights import DigestMismatch
from stepwell.rl.batching import BatchManifest, BatchRow
from stepwell.rl.config import OptimiserConfig
from stepwell.rl.masks import MaskReason
from stepwell.rl.samples import TrainSample

ComputeDtype = Literal["float32", "bfloat16"]


class NonFinite(Exception):
    """A loss or a gradient is not finite. The trainer's state is as before the step."""


class WrongParent(Exception):
    """The trainer holds another version than the one that the batch starts from."""


class UnsupportedModel(Exception):
    """A model that this trainer would compute wrongly."""


class RankLost(Exception):
    """A process of the trainer died or fell silent. The trainer is of no use any more: close it and rebuild."""


class TrainerClosed(Exception):
    """The trainer was closed, perhaps in the middle of a step."""


@dataclass(frozen=True)
class TrainBatch:
    """A manifest and the rows that it names."""

    manifest: BatchManifest
    samples: tuple[TrainSample | None, ...]
    """Aligned with `manifest.rows()`; None for a rollout without a row."""

    @cached_property
    def recorded(self) -> tuple[BatchRow, ...]:
        """What the manifest says of each row."""
        return self.manifest.rows()

    def check(self) -> None:
        """Refuses rows that are not those of the manifest.

        Raises:
            DigestMismatch: a row differs from its digest, or rows are missing or too many.
            MissingLogprob: a generated token without a usable log-probability.
        """
        if len(self.samples) != len(self.recorded):
            raise DigestMismatch(f"{len(self.samples)} rows for a manifest of {len(self.recorded)}")
        for sample, recorded in zip(self.samples, self.recorded, strict=True):
            found = "" if sample is None else sample.content_digest()
            if found != recorded.content:
                raise DigestMismatch(
                    f"{recorded.stream}: row {found or 'missing'}, manifest {recorded.content or 'none'}"
                )


class NumericEnvironment(BaseModel):
    """What decides the bits of a step: equal environments promise equal bits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    torch: str
    """Version of torch."""
    transformers: str
    """Version of transformers."""
    platform: str
    """Operating system and machine."""
    processor: str
    """Vector instructions that torch uses, for example `AVX512`."""
    threads: int
    """Threads of one operation."""
    ranks: int = 1
    """Processes among which the micro-batches are dealt; their gradients are added in the order of ranks."""
    mkldnn: bool
    """Whether oneDNN kernels are on."""
    compute_dtype: ComputeDtype
    """Of activations and of the exported weights."""
    attention: str
    """Attention kernel of the model."""


class StepResult(BaseModel):
    """What one training step did. Everything but the durations is a function of weights, batch and environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int
    version: int
    """Version that it made."""
    loss: float
    """Over the whole batch, as `rl.loss` and `rl.loss_agg_mode` say (docs/losses.md)."""
    grad_norm: float
    """Global norm before clipping."""
    learning_rate: float
    tokens: int
    """Positions that went through the model, padding left out."""
    padded_tokens: int
    """Positions that went through the model."""
    trained_tokens: int
    """Positions that also went backward, padding left out."""
    generated_tokens: int
    """Generated tokens that were compared with the engine's."""
    loss_tokens: int
    """Generated tokens of rows that are not masked; under `token_mean` the denominator of the loss. Those that a bound
    of importance gives the weight 0 are among them."""
    mismatch_mean: float
    """Mean |log-probability by the trainer - by the engine| over all generated tokens, masked rows too, in nats."""
    mismatch_max: float
    """The largest of them."""
    kl_mean: float
    """Divergence of the policy that is trained, before the step, from the one that generated, in nats a token: the mean
    of r - 1 - log r over the generated tokens, with r the probability by the trainer over that by the engine, an
    estimate without bias and never below 0 (Schulman 2020, "Approximating KL divergence", k3)."""
    clip_fraction: float
    """Share of the loss tokens over which a bound decided: the clip of the ratio (grpo; gspo, of its row), of the
    ratio's weight (cispo), or of the correction (tis: bounded; icepop: weight 0). Rows of weight 0 by seq_mask_tis are
    counted under `mask_counts` alone; rows without a gradient are not looked at."""
    entropy: float
    """Mean of -log-probability over the generated tokens, in nats: an estimate without bias if they were sampled from
    this policy."""
    mask_counts: dict[MaskReason, int]
    """Rollouts under each cause of the manifest that occurs, and rows under each that is found in the step."""
    forward_backward_s: float
    """Wall clock of the model."""
    optimiser_s: float
    """Wall clock of clipping and update."""

    def metrics(self) -> dict[str, float]:
        """Flat numbers, as the ledger keeps them; a mask's count is under `masked_<cause>`."""
        plain = self.model_dump(mode="json", exclude={"mask_counts", "step", "version"})
        return {name: float(value) for name, value in plain.items()} | {
            f"masked_{cause}": float(count) for cause, count in self.mask_counts.items()
        }


class Trainer(Protocol):
    """Holds one weight version and its optimiser. Methods block; call them one at a time, all but `close`."""

    @property
    def version(self) -> int:
        """Version in memory."""
        ...

    @property
    def environment(self) -> NumericEnvironment:
        """What decides the bits."""
        ...

    def step(self, batch: TrainBatch, optimiser: OptimiserConfig | None = None) -> StepResult:
        """Applies one optimiser step; on any error of the batch the state is as before.

        Weights, moments, batch, `optimiser` and the numeric environment decide every bit of what comes out.

        Args:
            batch: what is trained.
            optimiser: learning rate, moments and clip of this step alone; None: those that the trainer was made with.

        Raises:
            WrongParent: the batch starts from another version.
            DigestMismatch: rows that are not the manifest's, or ranks that came to different weights.
            MissingLogprob: a generated token without a usable log-probability.
            NonFinite: loss or gradient.
            RankLost: a process of the trainer died or fell silent.
            TrainerClosed: `close` was called meanwhile.
        """
        ...

    def digests(self) -> WeightDigests:
        """Digests of master weights, exported weights and optimiser."""
        ...

    def export(self, folder: Path) -> None:
        """Writes the version as a Hugging Face folder that engines load; the folder must not exist."""
        ...

    def probe(self, token_ids: tuple[int, ...]) -> list[float]:
        """Log-probability of each token but the first, at temperature 1, in nats, with the exported weights: what an
        engine that serves this version must answer to `score`."""
        ...

    def save_checkpoint(self, folder: Path) -> None:
        """Writes master weights and optimiser, to the bit; the folder must not exist."""
        ...

    def load_checkpoint(self, folder: Path) -> None:
        """Takes up a checkpoint; version and digests are then those at its saving.

        Raises:
            DigestMismatch: the checkpoint is damaged, or another model's.
            RankLost: a process of the trainer died or fell silent.
        """
        ...

    def close(self) -> None:
        """Ends a step that another thread is in, soon, and every process that the trainer started. Twice is once."""
        ...
