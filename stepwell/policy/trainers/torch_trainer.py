"""The trainer on plain torch: any Hugging Face causal model, one process, deterministic.

Left out on purpose: a KL term and several updates a batch (the benchmark has neither), and sharing the computation of a
group's common prompt.
"""

import json
import math
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from stepwell.events.numbers import WeightDigests
from stepwell.policy.trainers.batch_rows import batch_row, row_tensors
from stepwell.policy.trainers.checkpoint import read_checkpoint, write_checkpoint
from stepwell.policy.trainers.protocol import (
    ComputeDtype,
    NonFinite,
    NumericEnvironment,
    StepResult,
    TrainBatch,
    WrongParent,
)
from stepwell.policy.trainers.torch_model import TorchModel
from stepwell.policy.trainers.torch_optimiser import MasterWeights
from stepwell.policy.weights import CONFIG_FILE, DigestMismatch, Weights, save_folder, weights_digest, weights_of
from stepwell.rl.batching import MicroBatch
from stepwell.rl.config import GrpoConfig, OptimiserConfig
from stepwell.rl.losses import grpo_loss
from stepwell.rl.masks import MaskReason
from stepwell.rl.schedule import learning_rate


@dataclass
class _Tally:
    """Sums over the micro-batches of one step."""

    loss_sum: float = 0.0
    loss_tokens: int = 0
    clipped_tokens: int = 0
    tokens: int = 0
    padded_tokens: int = 0
    trained_tokens: int = 0
    generated_tokens: int = 0
    difference_sum: float = 0.0
    difference_max: float = 0.0
    negative_logprob_sum: float = 0.0
    masks: Counter[MaskReason] = field(default_factory=Counter[MaskReason])


class TorchTrainer:
    """One weight version in memory, with its optimiser. Not safe for concurrent calls; blocks while it computes.

    Making one sets process-wide state of torch: deterministic algorithms, and the number of threads.
    """

    def __init__(
        self,
        model: TorchModel,
        folder: Path,
        optimiser: OptimiserConfig,
        grpo: GrpoConfig,
        *,
        threads: int,
        compute_dtype: ComputeDtype,
        version: int = 0,
    ) -> None:
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(threads)
        self._model = model
        self._folder = folder
        self._optimiser_config = optimiser
        self._grpo = grpo
        self._threads = threads
        self._version = version
        self._environment = model.environment(threads=threads, compute_dtype=compute_dtype)
        self._masters = MasterWeights(
            dict(model.model.named_parameters()),
            weights_of(model.model).aliases,
            optimiser,
            getattr(torch, compute_dtype),
        )

    @classmethod
    def from_folder(
        cls,
        folder: Path,
        optimiser: OptimiserConfig,
        grpo: GrpoConfig,
        *,
        threads: int,
        compute_dtype: ComputeDtype = "float32",
        version: int = 0,
    ) -> "TorchTrainer":
        """A trainer whose masters are the folder's weights and whose optimiser is fresh.

        Args:
            folder: Hugging Face folder; its config and tokenizer files go into each export.
            optimiser: learning rate, moments, clip.
            grpo: loss and masks.
            threads: of one operation; part of what decides the bits.
            compute_dtype: of activations and exported weights.
            version: the version that the folder is.

        Raises:
            WeightsError: the folder cannot be loaded.
            UnsupportedModel: the model would be computed wrongly.
        """
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(threads)
        model = TorchModel.from_folder(folder)
        return cls(model, folder, optimiser, grpo, threads=threads, compute_dtype=compute_dtype, version=version)

    @property
    def version(self) -> int:
        """Version in memory."""
        return self._version

    @property
    def environment(self) -> NumericEnvironment:
        """What decides the bits."""
        return self._environment

    def step(self, batch: TrainBatch) -> StepResult:
        """Applies one optimiser step; on any error the state is as before (see `Trainer.step`)."""
        manifest = batch.manifest
        if manifest.parent_version != self._version:
            raise WrongParent(
                f"step {manifest.step} starts from version {manifest.parent_version}, version {self._version} is loaded"
            )
        batch.check()
        self._pin_threads()
        began = time.perf_counter()
        tally = _Tally(masks=Counter(manifest.mask_counts()))
        try:
            for micro_batch in manifest.micro_batches:
                self._run(micro_batch, batch, tally)
            loss = tally.loss_sum / max(1, tally.loss_tokens)
            norm = self._masters.norm(max(1, tally.loss_tokens))
        except BaseException:
            self._masters.discard()
            raise
        computed = time.perf_counter()
        rate = learning_rate(self._optimiser_config, manifest.step)
        self._masters.update(rate, norm)
        self._version = manifest.version
        generated = max(1, tally.generated_tokens)
        return StepResult(
            step=manifest.step,
            version=manifest.version,
            loss=loss,
            grad_norm=norm,
            learning_rate=rate,
            tokens=tally.tokens,
            padded_tokens=tally.padded_tokens,
            trained_tokens=tally.trained_tokens,
            generated_tokens=tally.generated_tokens,
            loss_tokens=tally.loss_tokens,
            mismatch_mean=tally.difference_sum / generated,
            mismatch_max=tally.difference_max,
            clip_fraction=tally.clipped_tokens / max(1, tally.loss_tokens),
            entropy=tally.negative_logprob_sum / generated,
            mask_counts=dict(sorted(tally.masks.items())),
            forward_backward_s=computed - began,
            optimiser_s=time.perf_counter() - computed,
        )

    def digests(self) -> WeightDigests:
        """Digests of master weights, exported weights and optimiser."""
        return WeightDigests(
            master=weights_digest(self._masters.weights()),
            exported=weights_digest(weights_of(self._model.model)),
            optimiser=weights_digest(self.optimiser_state()),
        )

    def optimiser_state(self) -> Weights:
        """AdamW's moments and step counts, as tensors named `<parameter>.<moment>`."""
        return self._masters.state()

    def export(self, folder: Path) -> None:
        """Writes the version as a Hugging Face folder that engines load (see `save_folder`)."""
        config: dict[str, Any] = json.loads((self._folder / CONFIG_FILE).read_text("utf-8"))
        config.pop("torch_dtype", None)
        config["dtype"] = self._environment.compute_dtype
        save_folder(weights_of(self._model.model), config, folder, tokenizer_from=self._folder)

    @torch.no_grad()
    def probe(self, token_ids: tuple[int, ...]) -> list[float]:
        """Log-probability of each token but the first, at temperature 1, with the exported weights."""
        if len(token_ids) < 2:
            raise ValueError(f"a probe of {len(token_ids)} tokens has nothing to predict; wanted at least 2")
        self._pin_threads()
        chosen_N = torch.arange(1, len(token_ids))
        return self._model.logprobs(torch.tensor([token_ids]), chosen_N, 1.0).tolist()

    def save_checkpoint(self, folder: Path) -> None:
        """Writes master weights and optimiser, to the bit."""
        write_checkpoint(folder, self._version, self.digests(), self._masters)

    def load_checkpoint(self, folder: Path) -> None:
        """Takes up a checkpoint; version and digests are then those at its saving.

        Raises:
            DigestMismatch: the checkpoint is damaged, another model's, or of another compute dtype. What was in memory
                may then be overwritten: load a good one before the next step.
        """
        header = read_checkpoint(folder, self._masters)
        self._version = header.version
        found = self.digests()
        if found != header.digests:
            raise DigestMismatch(f"{folder}: after loading, the digests are {found}, its record says {header.digests}")

    def _run(self, micro_batch: MicroBatch, batch: TrainBatch, tally: _Tally) -> None:
        """One micro-batch forward and, if it trains, backward."""
        samples = [batch_row(batch, index) for index in micro_batch.samples]
        ids_BT, chosen_N, row_N = row_tensors(samples, micro_batch.length)
        engine_N = torch.tensor([value for sample in samples for value in sample.logprobs], dtype=torch.float32)
        recorded = [batch.manifest.samples[index] for index in micro_batch.samples]
        advantages_B = torch.tensor([sample.advantage for sample in recorded], dtype=torch.float32)

        with torch.set_grad_enabled(micro_batch.train):
            logprobs_N = self._model.logprobs(ids_BT, chosen_N, batch.manifest.temperature)
            loss = grpo_loss(logprobs_N, engine_N, row_N, advantages_B, self._grpo)
        value = loss.loss_sum.item() if micro_batch.train else 0.0
        difference_N = (logprobs_N.detach() - engine_N).abs()
        if not (math.isfinite(value) and bool(torch.isfinite(difference_N).all())):
            raise NonFinite(
                f"step {batch.manifest.step}: the loss is {value}, log-probabilities differ from the engine's by up to "
                f"{float(difference_N.max())}, over the rollouts {[sample.stream for sample in recorded]}"
            )
        if micro_batch.train:
            loss.loss_sum.backward()
            self._masters.collect()

        tokens = sum(sample.tokens for sample in recorded)
        tally.tokens += tokens
        tally.padded_tokens += ids_BT.numel()
        tally.generated_tokens += len(engine_N)
        tally.difference_sum += float(difference_N.sum(dtype=torch.float64))
        tally.difference_max = max(tally.difference_max, float(difference_N.max()))
        tally.negative_logprob_sum -= float(logprobs_N.detach().sum(dtype=torch.float64))
        if micro_batch.train:
            tally.trained_tokens += tokens
            tally.loss_sum += value
            tally.clipped_tokens += loss.clipped_tokens
        for row, sample in enumerate(recorded):
            if sample.mask is not None:
                continue
            if bool(loss.mismatched_B[row]):
                tally.masks[MaskReason.MISMATCH] += 1
                continue
            if bool(loss.out_of_bounds_B[row]):
                tally.masks[MaskReason.IMPORTANCE] += 1
            tally.loss_tokens += sample.generated_tokens

    def _pin_threads(self) -> None:
        """The caller's thread may be new, and another library may have set its own number."""
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
