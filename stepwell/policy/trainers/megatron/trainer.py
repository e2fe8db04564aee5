"""The trainer on Megatron-core: tensors cut among processes of this machine, replicas that share the micro-batches.

The process that makes it holds no weights and never imports Megatron: it reads and checks, tells the ranks what to do,
and watches them. Version, digests and checkpoints are those of the plain trainer: tensors under their Hugging Face
names, whole, so that either trainer, in any layout, takes up what the other has left.

Left out on purpose: ranks on other machines, pipeline and context parallelism, experts dealt over replicas, and a
sharded optimiser. Whoever exports or saves holds the whole model for a moment.
"""

import pickle
import threading
import time
from pathlib import Path

import torch

from stepwell.events.numbers import WeightDigests
from stepwell.policy.trainers.checkpoint import Checkpoint, checked_checkpoint
from stepwell.policy.trainers.megatron.environment import environment_of
from stepwell.policy.trainers.megatron.layout import Across, Layout
from stepwell.policy.trainers.megatron.model_folder import FolderModel, read_model
from stepwell.policy.trainers.megatron.spec import MegatronSpec
from stepwell.policy.trainers.megatron.weight_map import weight_units
from stepwell.policy.trainers.protocol import (
    ComputeDtype,
    NumericEnvironment,
    RankLost,
    StepResult,
    TrainBatch,
    TrainerClosed,
    UnsupportedModel,
    WrongParent,
)
from stepwell.policy.trainers.rank_exchange import RankExchange, open_meeting
from stepwell.policy.trainers.rank_messages import (
    Apply,
    Computed,
    Digest,
    Discard,
    Export,
    Holds,
    Join,
    Load,
    Probe,
    Ready,
    Save,
    Scored,
    Train,
    Updated,
)
from stepwell.policy.trainers.rank_peers import START_S, RankPeers
from stepwell.policy.trainers.router_names import NO_ROUTER, ROUTER
from stepwell.policy.trainers.step_result import Update, step_result, total_of
from stepwell.policy.trainers.torch_optimiser import MOMENTS, STEP
from stepwell.policy.weights import DigestMismatch
from stepwell.rl.config import GrpoConfig, OptimiserConfig

_RANK = "stepwell.policy.trainers.megatron.rank_process"


class MegatronTrainer:
    """See `Trainer`. Close it, or its processes live as long as the thread that made it."""

    def __init__(self, spec: MegatronSpec, model: FolderModel) -> None:
        """Use `from_folder`."""
        self._spec = spec
        self._model = model
        self._version = spec.version
        self._digests: WeightDigests | None = None
        self._closed = threading.Event()
        self._busy = threading.Lock()
        self._environment = environment_of(spec)
        self._peers = RankPeers(spec, _RANK)
        try:
            self._peers.gather(Ready, START_S)
            meeting = open_meeting(spec.ranks, spec.timeout_s)
            self._peers.tell(Join(meeting.port))
            self._exchange = RankExchange(meeting, 0, spec.ranks, spec.timeout_s)
            self._peers.gather(Ready, START_S)
        except BaseException:
            self._peers.kill()
            self._peers.close()
            raise

    @classmethod
    def from_folder(
        cls,
        folder: Path,
        optimiser: OptimiserConfig,
        grpo: GrpoConfig,
        *,
        threads: int,
        layout: Layout,
        timeout_s: float,
        compute_dtype: ComputeDtype = "float32",
        freeze_router: bool = False,
        version: int = 0,
    ) -> "MegatronTrainer":
        """Starts the ranks and waits until all have their weights. Call it in a thread that lives as long as
        the trainer: the ranks die with it.

        Args:
            layout: how the model is cut, and how many replicas of it there are.
            timeout_s: longest that a rank may take for one micro-batch, or for an exchange.
            freeze_router: experts are chosen as version 0 chooses them: routers have no optimiser and never move.
            folder, optimiser, grpo, threads, compute_dtype, version: see `TorchTrainer.from_folder`; threads are those
                of each rank.

        Raises:
            WeightsError: see `TorchTrainer.from_folder`.
            UnsupportedModel: the model would be computed wrongly, or cannot be cut like this.
            RankLost: a rank did not start.
        """
        model = read_model(folder)
        if refusal := layout.refusal(model.shape.counts):
            raise UnsupportedModel(refusal)
        if freeze_router and model.shape.experts is None:
            raise UnsupportedModel(NO_ROUTER)
        placed = {name for unit in weight_units(model.shape, layout) for name in unit.names}
        if placed != set(model.shapes):
            raise UnsupportedModel(
                f"{folder}: Megatron's model has no place for {sorted(model.shapes.keys() - placed)[:3]}, and lacks "
                f'{sorted(placed - model.shapes.keys())[:3]}; use trainer.backend = "torch"'
            )
        spec = MegatronSpec(
            rank=0,
            ranks=layout.ranks + 1,
            timeout_s=timeout_s,
            folder=folder,
            optimiser=optimiser,
            grpo=grpo,
            threads=threads,
            compute_dtype=compute_dtype,
            version=version,
            layout=layout,
            shape=model.shape,
            aliases=model.aliases,
            freeze_router=freeze_router,
        )
        return cls(spec, model)

    @property
    def version(self) -> int:
        """Version in memory."""
        return self._version

    @property
    def environment(self) -> NumericEnvironment:
        """What decides the bits."""
        return self._environment

    def step(self, batch: TrainBatch, optimiser: OptimiserConfig | None = None) -> StepResult:
        """Applies one optimiser step in every rank (see `Trainer.step`)."""
        with self._busy:
            if batch.manifest.parent_version != self._version:
                raise WrongParent(
                    f"step {batch.manifest.step} starts from version {batch.manifest.parent_version}, version "
                    f"{self._version} is loaded"
                )
            batch.check()
            try:
                return self._step(batch, optimiser)
            except RankLost as error:
                if self._closed.is_set():
                    raise TrainerClosed(f"the trainer was closed in step {batch.manifest.step}") from error
                raise

    def digests(self) -> WeightDigests:
        """Digests of master weights, exported weights and optimiser; they do not depend on the layout."""
        with self._busy:
            return self._known_digests()

    def export(self, folder: Path) -> None:
        """Writes the version as a Hugging Face folder that engines load; the folder must not exist."""
        with self._busy:
            self._peers.tell(Export(folder))
            self._done()

    def probe(self, token_ids: tuple[int, ...]) -> list[float]:
        """Log-probability of each token but the first, at temperature 1, with the exported weights."""
        if len(token_ids) < 2:
            raise ValueError(f"a probe of {len(token_ids)} tokens has nothing to predict; wanted at least 2")
        with self._busy:
            self._peers.tell(Probe(token_ids))
            return self._peers.gather(Scored)[0].logprobs

    def save_checkpoint(self, folder: Path) -> None:
        """Writes master weights and optimiser, to the bit; the folder must not exist."""
        with self._busy:
            self._peers.tell(Save(folder, self._known_digests()))
            self._done()

    def load_checkpoint(self, folder: Path) -> None:
        """Takes up a checkpoint of any layout, or of the plain trainer (see `Trainer.load_checkpoint`)."""
        with self._busy:
            checkpoint = checked_checkpoint(folder, self._model.aliases)
            self._check_model(folder, checkpoint)
            self._digests = None
            self._peers.tell(Load(folder, checkpoint.header.version))
            self._agree(self._peers.gather(Updated, START_S))
            self._version = checkpoint.header.version
            found = self._known_digests()
            if found != checkpoint.header.digests:
                raise DigestMismatch(
                    f"{folder}: after loading, the digests are {found}, its record says {checkpoint.header.digests}"
                )

    def close(self) -> None:
        """Ends the ranks, and a step that another thread is in."""
        self._closed.set()
        self._peers.kill()
        with self._busy:
            self._peers.close()

    def _step(self, batch: TrainBatch, optimiser: OptimiserConfig | None) -> StepResult:
        began = time.perf_counter()
        data = torch.frombuffer(bytearray(pickle.dumps((batch, optimiser))), dtype=torch.uint8)
        self._peers.tell(Train(data.numel()))
        self._exchange.broadcast(data)
        self._peers.begin()
        for computed in self._peers.gather(Computed):
            if computed.error is not None:
                self._peers.tell(Discard())
                raise computed.error
        total = total_of(batch.manifest, self._peers.tallies)
        computed_s = time.perf_counter() - began
        self._digests = None
        self._peers.tell(Apply(float(total.loss_divisor)))
        updated = self._peers.gather(Updated)
        for each in updated:
            if each.error is not None:
                raise each.error
        self._agree(updated)
        self._version = batch.manifest.version
        return step_result(
            batch.manifest,
            total,
            Update(updated[0].norm, updated[0].learning_rate),
            forward_backward_s=computed_s,
            optimiser_s=time.perf_counter() - began - computed_s,
        )

    def _agree(self, updated: list[Updated]) -> None:
        """Ranks that hold the same part of the same weights hold the same bits.

        Raises:
            DigestMismatch: which do not.
        """
        layout = self._spec.layout
        kinds: tuple[Across, ...] = ("none", "tensor", "expert")
        for rank, each in enumerate(updated):
            for across in kinds:
                first = layout.part(across, rank)
                if each.parts[across] != updated[first].parts[across]:
                    raise DigestMismatch(
                        f"ranks {first} and {rank} of the trainer hold different weights after the same updates: one "
                        "of them computes wrongly; look for faulty memory or a mixed installation"
                    )

    def _known_digests(self) -> WeightDigests:
        if self._digests is None:
            self._peers.tell(Digest())
            self._digests = self._peers.gather(Holds, START_S)[0].digests
            assert self._digests is not None  # the first rank always answers
        return self._digests

    def _done(self) -> None:
        for computed in self._peers.gather(Computed, START_S):
            if computed.error is not None:
                raise computed.error

    def _check_model(self, folder: Path, checkpoint: Checkpoint) -> None:
        found = {name: tuple(tensor.shape) for name, tensor in {**checkpoint.masters, **checkpoint.state}.items()}
        wanted = dict(self._model.shapes)
        for name, shape in self._model.shapes.items():
            if not (self._spec.freeze_router and name.endswith(ROUTER)):
                wanted |= {f"{name}.{STEP}": (), **{f"{name}.{moment}": shape for moment in MOMENTS}}
        if found != wanted:
            differing = sorted(found.keys() ^ wanted.keys()) or [name for name in wanted if found[name] != wanted[name]]
            raise DigestMismatch(f"{folder} is another model's checkpoint: it differs in {differing[:3]}")
