"""One rank's part of a weight version and of its optimiser, and what it does with them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from torch import Tensor
from torch.distributed import (
    PrefixStore,  # pyright: ignore[reportPrivateImportUsage]  # documented, but not in torch's own list of names
    Store,  # pyright: ignore[reportPrivateImportUsage]  # the same
)

from stepwell.events.numbers import WeightDigests
from stepwell.policy.trainers.checkpoint import MASTERS_FILE, OPTIMISER_FILE, write_checkpoint
from stepwell.policy.trainers.export import export_weights
from stepwell.policy.trainers.megatron.device import open_device
from stepwell.policy.trainers.megatron.folder_tensors import FolderTensors
from stepwell.policy.trainers.megatron.gpt_model import MegatronModel
from stepwell.policy.trainers.megatron.replicas import Replicas
from stepwell.policy.trainers.megatron.spec import MegatronSpec
from stepwell.policy.trainers.megatron.weight_map import WeightUnit, weight_units
from stepwell.policy.trainers.micro_batches import Tally, run_micro_batch
from stepwell.policy.trainers.protocol import TrainBatch
from stepwell.policy.trainers.step_result import Update
from stepwell.policy.trainers.torch_optimiser import MOMENTS, STEP, MasterWeights
from stepwell.policy.weights import Weights, digest_of_each, weight_files, weights_digest
from stepwell.rl.batching import BatchManifest
from stepwell.rl.config import OptimiserConfig
from stepwell.rl.schedule import learning_rate

_ROUTER = ".mlp.router.weight"


class MegatronShard:
    """Makes process-wide state: torch.distributed, Megatron's groups, deterministic algorithms, the number of threads.

    Every method is called by all ranks.
    """

    def __init__(self, spec: MegatronSpec, meeting: Store) -> None:
        """Meets the other ranks, makes the model and reads this rank's part of its weights.

        Raises:
            WeightsError: a tensor is missing or damaged.
        """
        self._spec = spec
        self._layout = spec.layout
        self._rank = spec.rank - 1
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(spec.threads)
        device = open_device(self._rank)
        dist.init_process_group(
            device.backend,
            store=PrefixStore("megatron", meeting),
            rank=self._rank,
            world_size=spec.layout.ranks,
            timeout=timedelta(seconds=spec.timeout_s),
        )
        parallel_state.initialize_model_parallel(
            spec.layout.tensor,
            expert_model_parallel_size=spec.layout.expert,
            expert_tensor_parallel_size=1,
            create_gloo_process_groups=False,
        )
        self._units = weight_units(spec.shape, spec.layout)
        self._replicas = Replicas(spec.layout, self._units, self._rank)
        self._model = MegatronModel(spec.shape, spec.layout, device.device)
        parameters = dict(self._model.model.named_parameters())
        for name, parameter in parameters.items():
            parameter.requires_grad_(not (spec.freeze_router and name.endswith(_ROUTER)))
        own = self._own_part(FolderTensors(weight_files(spec.folder)), self._units)
        assert own.keys() == parameters.keys()
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(own[name])
        self._parameters = parameters
        self._masters = MasterWeights(parameters, {}, getattr(torch, spec.compute_dtype))

    def accumulate(self, batch: TrainBatch, indices: Iterable[int], after_each: Callable[[int, Tally], None]) -> None:
        """Adds up the gradients of some micro-batches, the same in all ranks of a replica.

        Raises:
            NonFinite, DigestMismatch: see `run_micro_batch`; call `discard`.
        """
        for index in indices:
            tally = run_micro_batch(self._model, batch.manifest.micro_batches[index], batch, self._spec.grpo)
            self._masters.collect()
            after_each(index, tally)

    def update(self, manifest: BatchManifest, divisor: float, optimiser: OptimiserConfig | None) -> Update:
        """Adds up all ranks' gradients, clips and applies them. Without a token to learn from nothing moves.

        Args:
            manifest: of the batch.
            divisor: of the gradients: `Tally.loss_divisor` of the whole batch; 0 without a token to learn from.
            optimiser: see `Trainer.step`.

        Raises:
            NonFinite: the gradient; call `discard`.
        """
        config = self._spec.optimiser if optimiser is None else optimiser
        gradients = dict(zip(self._masters.trained, self._masters.gradients(), strict=True))
        self._replicas.add_up(gradients)
        norm = self._replicas.norm(gradients, divisor or 1.0)
        rate = learning_rate(config, manifest.step)
        if divisor:
            self._masters.update(config, rate, norm)
        else:
            self._masters.discard()
        return Update(norm, rate)

    def discard(self) -> None:
        """Forgets the gradients of a step that is not applied."""
        self._masters.discard()

    @torch.no_grad()
    def probe(self, token_ids: tuple[int, ...]) -> list[float]:
        """Log-probability of each token but the first, at temperature 1, with the exported weights."""
        return self._model.logprobs(torch.tensor([token_ids]), torch.arange(1, len(token_ids)), 1.0).tolist()

    def held(self) -> dict[str, str]:
        """Digests of what this rank holds, masters and optimiser, by how it is cut: ranks of the same part agree."""
        digests: dict[str, str] = {}
        masters, state = self._masters.weights().tensors, self._masters.state().tensors
        for across in ("none", "tensor", "expert"):
            names = [name for unit in self._units if unit.across == across for name in unit.parameters]
            found = {name: masters[name].cpu() for name in names}
            for key in (STEP, *MOMENTS):
                keys = [f"{name}.{key}" for name in names if name in self._masters.trained]
                found |= {key: state[key].cpu() for key in keys}
            digests[across] = weights_digest(Weights(tensors=found))
        return digests

    def digests(self) -> WeightDigests | None:
        """Digests of master weights, exported weights and optimiser; None from all ranks but the first."""
        exported = {name: parameter.detach() for name, parameter in self._parameters.items()}
        found = WeightDigests(
            master=self._digest(self._replicas.whole(self._masters.weights().tensors), self._spec.aliases),
            exported=self._digest(self._replicas.whole(exported), self._spec.aliases),
            optimiser=self._digest(self._whole_state(), {}),
        )
        return found if self._rank == 0 else None

    def export(self, folder: Path) -> None:
        """Writes the version as a Hugging Face folder that engines load; the first rank holds the whole meanwhile."""
        parameters = {name: parameter.detach() for name, parameter in self._parameters.items()}
        weights = self._collected(self._replicas.whole(parameters))
        if self._rank == 0:
            tied = Weights(tensors=weights, aliases=self._spec.aliases)
            export_weights(tied, self._spec.folder, folder, self._spec.compute_dtype)

    def save_checkpoint(self, folder: Path, version: int, digests: WeightDigests) -> None:
        """Writes master weights and optimiser, to the bit; the first rank holds the whole meanwhile."""
        masters = self._collected(self._replicas.whole(self._masters.weights().tensors))
        state = self._collected(self._whole_state())
        if self._rank == 0:
            tied = Weights(tensors=masters, aliases=self._spec.aliases)
            write_checkpoint(folder, version, digests, tied, Weights(tensors=state))

    def load_checkpoint(self, folder: Path) -> None:
        """Takes up this rank's part of a checkpoint that was checked, whatever layout wrote it."""
        masters = FolderTensors([folder / MASTERS_FILE])
        state = FolderTensors([folder / OPTIMISER_FILE])
        trained = [unit for unit in self._units if unit.parameters[0] in self._masters.trained]
        own_state: dict[str, Tensor] = {}
        for moment in MOMENTS:
            own_state |= self._own_part(state, trained, f".{moment}")
        for unit in trained:
            own_state |= {f"{name}.{STEP}": state[f"{unit.names[0]}.{STEP}"] for name in unit.parameters}
        self._masters.restore(self._own_part(masters, self._units), own_state)

    def _own_part(self, whole: FolderTensors, units: Iterable[WeightUnit], suffix: str = "") -> dict[str, Tensor]:
        own: dict[str, Tensor] = {}
        for unit in units:
            parts, part = self._layout.parts(unit.across), self._layout.part(unit.across, self._rank)
            cut = unit.cut.part([whole[f"{name}{suffix}"] for name in unit.names], parts, part)
            own |= {f"{name}{suffix}": tensor for name, tensor in zip(unit.parameters, cut, strict=True)}
        return own

    def _whole_state(self) -> Iterator[tuple[str, Tensor]]:
        state = self._masters.state().tensors
        for moment in MOMENTS:
            tensors = {name: state[f"{name}.{moment}"] for name in self._masters.trained}
            for name, tensor in self._replicas.whole(tensors):
                yield f"{name}.{moment}", tensor
        for unit in self._units:
            if unit.parameters[0] in self._masters.trained:
                count = state[f"{unit.parameters[0]}.{STEP}"].cpu()
                yield from ((f"{name}.{STEP}", count.clone()) for name in unit.names)

    def _collected(self, tensors: Iterator[tuple[str, Tensor]]) -> dict[str, Tensor]:
        """All of them in the first rank; in another only its part in putting them together is done."""
        return {name: tensor for name, tensor in tensors if self._rank == 0}

    def _digest(self, tensors: Iterator[tuple[str, Tensor]], aliases: Mapping[str, str]) -> str:
        if self._rank == 0:
            return digest_of_each(tensors, aliases)
        self._collected(tensors)
        return ""
