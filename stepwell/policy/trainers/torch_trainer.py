"""The trainer on plain torch: any Hugging Face causal model, one process, deterministic.

Left out on purpose: a KL term and several updates a batch (the benchmark has neither), and sharing the computation of a
group's common prompt.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from stepwell.events.numbers import WeightDigests
from stepwell.policy.trainers.checkpoint import read_checkpoint, write_checkpoint
from stepwell.policy.trainers.export import export_weights
from stepwell.policy.trainers.micro_batches import Tally, run_micro_batch
from stepwell.policy.trainers.protocol import (
    ComputeDtype,
    NumericEnvironment,
    StepResult,
    TrainBatch,
    TrainerClosed,
    WrongParent,
)
from stepwell.policy.trainers.step_result import Update, step_result, total_of
from stepwell.policy.trainers.torch_model import TorchModel
from stepwell.policy.trainers.torch_optimiser import MasterWeights
from stepwell.policy.weights import DigestMismatch, Weights, weights_digest, weights_of
from stepwell.rl.batching import BatchManifest
from stepwell.rl.config import GrpoConfig, OptimiserConfig
from stepwell.rl.schedule import learning_rate


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
            getattr(torch, compute_dtype),
        )
        self._closed = threading.Event()

    @classmethod
    def from_folder(
        cls,
        folder: Path,
        optimiser: OptimiserConfig,
        grpo: GrpoConfig,
        *,
        threads: int,
        compute_dtype: ComputeDtype = "float32",
        freeze_router: bool = False,
        version: int = 0,
    ) -> "TorchTrainer":
        """A trainer whose masters are the folder's weights and whose optimiser is fresh.

        Args:
            folder: Hugging Face folder; its config and tokenizer files go into each export.
            optimiser: learning rate, moments, clip of a step that is given no other.
            grpo: loss and masks.
            threads: of one operation; part of what decides the bits.
            compute_dtype: of activations and exported weights.
            freeze_router: the routers of a mixture of experts have no optimiser and never move.
            version: the version that the folder is.

        Raises:
            WeightsError: the folder cannot be loaded.
            UnsupportedModel: the model would be computed wrongly, or has no router to freeze.
        """
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(threads)
        model = TorchModel.from_folder(folder)
        if freeze_router:
            model.freeze_router()
        return cls(model, folder, optimiser, grpo, threads=threads, compute_dtype=compute_dtype, version=version)

    @property
    def version(self) -> int:
        """Version in memory."""
        return self._version

    @property
    def environment(self) -> NumericEnvironment:
        """What decides the bits."""
        return self._environment

    def step(self, batch: TrainBatch, optimiser: OptimiserConfig | None = None) -> StepResult:
        """Applies one optimiser step; on any error the state is as before (see `Trainer.step`)."""
        self.check_parent(batch.manifest)
        batch.check()
        began = time.perf_counter()
        try:
            tallies = self.accumulate(batch, range(len(batch.manifest.micro_batches)))
            return self.apply(batch.manifest, tallies, optimiser, time.perf_counter() - began)
        except BaseException:
            self.discard()
            raise

    def check_parent(self, manifest: BatchManifest) -> None:
        """Refuses a batch that starts from another version.

        Raises:
            WrongParent: it does.
        """
        if manifest.parent_version != self._version:
            raise WrongParent(
                f"step {manifest.step} starts from version {manifest.parent_version}, version {self._version} is loaded"
            )

    def accumulate(
        self, batch: TrainBatch, indices: Iterable[int], after_each: Callable[[int, Tally], None] | None = None
    ) -> dict[int, Tally]:
        """First part of a step: adds up the gradients of some micro-batches.

        Args:
            batch: checked.
            indices: of micro-batches, in the order in which they are computed.
            after_each: told of each micro-batch, its index and tally.

        Returns:
            The tally of each.

        Raises:
            NonFinite: loss or log-probabilities of one; call `discard`.
            TrainerClosed: meanwhile; call `discard`.
        """
        self._pin_threads()
        tallies: dict[int, Tally] = {}
        for index in indices:
            if self._closed.is_set():
                raise TrainerClosed(f"the trainer was closed in step {batch.manifest.step}; its state is as before")
            tallies[index] = run_micro_batch(self._model, batch.manifest.micro_batches[index], batch, self._grpo)
            self._masters.collect()
            if after_each is not None:
                after_each(index, tallies[index])
        return tallies

    def gradients(self) -> list[Tensor]:
        """What `accumulate` added up, float32, contiguous, in the same order in every process; `apply` uses what is
        written into it."""
        return self._masters.gradients()

    def apply(
        self,
        manifest: BatchManifest,
        tallies: Mapping[int, Tally],
        optimiser: OptimiserConfig | None,
        forward_backward_s: float,
    ) -> StepResult:
        """Second part of a step: clips and applies the gradients.

        Args:
            manifest: of the batch.
            tallies: of every micro-batch of the batch.
            optimiser: see `Trainer.step`.
            forward_backward_s: what the first part took.

        Raises:
            NonFinite: the gradient; call `discard`.
        """
        began = time.perf_counter()
        total = total_of(manifest, tallies)
        update = self.update(manifest, float(total.loss_divisor), optimiser)
        return step_result(
            manifest,
            total,
            update,
            forward_backward_s=forward_backward_s,
            optimiser_s=time.perf_counter() - began,
        )

    def update(self, manifest: BatchManifest, divisor: float, optimiser: OptimiserConfig | None) -> Update:
        """The update itself. Without a token to learn from, weights and optimiser stay as they are: AdamW's momentum
        alone would move them.

        Args:
            manifest: of the batch.
            divisor: of the gradients: `Tally.loss_divisor` of the whole batch; 0 without a token to learn from.
            optimiser: see `Trainer.step`.

        Raises:
            NonFinite: the gradient; call `discard`.
        """
        config = self._optimiser_config if optimiser is None else optimiser
        self._pin_threads()
        norm = self._masters.norm(divisor or 1.0)
        rate = learning_rate(config, manifest.step)
        if divisor:
            self._masters.update(config, rate, norm)
        else:
            self._masters.discard()
        self._version = manifest.version
        return Update(norm, rate)

    def discard(self) -> None:
        """Forgets the gradients of a step that is not applied."""
        self._masters.discard()

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
        export_weights(weights_of(self._model.model), self._folder, folder, self._environment.compute_dtype)

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
        write_checkpoint(folder, self._version, self.digests(), self._masters.weights(), self._masters.state())

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

    def close(self) -> None:
        """Ends a step that another thread is in at its next micro-batch."""
        self._closed.set()

    def _pin_threads(self) -> None:
        """The caller's thread may be new, and another library may have set its own number."""
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
