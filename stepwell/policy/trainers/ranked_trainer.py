"""A data-parallel trainer: several processes on this machine, each with the whole model.

Rank 0 is the process that makes it. The micro-batches are dealt to ranks by the manifest alone, each rank adds up the
gradients of its own, the sums are exchanged over gloo and added in the order of ranks, and every rank applies the same
update. So the bits depend on what is recorded and on the number of ranks, which is in the numeric environment; and that
all ranks hold the same weights is checked after each step.

Left out on purpose: ranks on other machines, and sharding of weights or optimiser. What is too large for one process
needs another backend.
"""

import pickle
import threading
import time
from pathlib import Path

import torch

from stepwell.events.numbers import WeightDigests
from stepwell.policy.trainers.dealing import deal
from stepwell.policy.trainers.micro_batches import Tally
from stepwell.policy.trainers.protocol import ComputeDtype, NonFinite, NumericEnvironment, StepResult, TrainBatch
from stepwell.policy.trainers.rank_exchange import RankExchange, open_meeting
from stepwell.policy.trainers.rank_messages import Apply, Computed, Discard, Holds, Join, Load, RankSpec, Ready, Train
from stepwell.policy.trainers.rank_peers import START_S, RankPeers
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.policy.weights import DigestMismatch
from stepwell.rl.config import GrpoConfig, OptimiserConfig


class RankedTrainer:
    """Rank 0 of a trainer of several processes (see `Trainer`). Close it, or its processes live as long as this one."""

    def __init__(self, own: TorchTrainer, peers: RankPeers, exchange: RankExchange, ranks: int) -> None:
        self._own = own
        self._peers = peers
        self._exchange = exchange
        self._ranks = ranks
        self._digests: WeightDigests | None = None
        self._busy = threading.Lock()

    @classmethod
    def from_folder(
        cls,
        folder: Path,
        optimiser: OptimiserConfig,
        grpo: GrpoConfig,
        *,
        threads: int,
        ranks: int,
        timeout_s: float,
        compute_dtype: ComputeDtype = "float32",
        freeze_router: bool = False,
        version: int = 0,
    ) -> "RankedTrainer":
        """Starts the other ranks and waits until all have met. Call it in a thread that lives as long as the trainer:
        the ranks die with it.

        Args:
            ranks: processes, this one among them.
            timeout_s: longest that a rank may take for one micro-batch, or for an exchange.
            folder, optimiser, grpo, threads, compute_dtype, freeze_router, version: see `TorchTrainer.from_folder`;
                threads are those of each rank.

        Raises:
            WeightsError, UnsupportedModel: see `TorchTrainer.from_folder`.
            RankLost: a rank did not start.
        """
        spec = RankSpec(0, ranks, timeout_s, folder, optimiser, grpo, threads, compute_dtype, freeze_router, version)
        peers = RankPeers(spec)
        try:
            own = TorchTrainer.from_folder(
                folder,
                optimiser,
                grpo,
                threads=threads,
                compute_dtype=compute_dtype,
                freeze_router=freeze_router,
                version=version,
            )
            peers.gather(Ready, START_S)
            meeting = open_meeting(ranks, timeout_s)
            peers.tell(Join(meeting.port))
            exchange = RankExchange(meeting, 0, ranks, timeout_s)
            peers.gather(Ready)
        except BaseException:
            peers.kill()
            peers.close()
            raise
        return cls(own, peers, exchange, ranks)

    @property
    def version(self) -> int:
        """Version in memory."""
        return self._own.version

    @property
    def environment(self) -> NumericEnvironment:
        """What decides the bits."""
        return self._own.environment.model_copy(update={"ranks": self._ranks})

    def step(self, batch: TrainBatch, optimiser: OptimiserConfig | None = None) -> StepResult:
        """Applies one optimiser step in every rank (see `Trainer.step`)."""
        with self._busy:
            self._own.check_parent(batch.manifest)
            batch.check()
            self._send(batch, optimiser)
            began = time.perf_counter()
            try:
                tallies = self._accumulate(batch)
                self._peers.tell(Apply(float(sum(tally.loss_divisor for tally in tallies.values()))))
                self._exchange.add_up(self._own.gradients())
                result = self._apply(batch, tallies, optimiser, began)
            except BaseException:
                self._own.discard()
                raise
            self._agree(self._own.digests())
            return result

    def digests(self) -> WeightDigests:
        """Digests of master weights, exported weights and optimiser, the same in every rank."""
        if self._digests is None:
            self._digests = self._own.digests()
        return self._digests

    def export(self, folder: Path) -> None:
        """Writes the version as a Hugging Face folder that engines load."""
        self._own.export(folder)

    def probe(self, token_ids: tuple[int, ...]) -> list[float]:
        """Log-probability of each token but the first, at temperature 1, with the exported weights."""
        return self._own.probe(token_ids)

    def save_checkpoint(self, folder: Path) -> None:
        """Writes master weights and optimiser, to the bit."""
        self._own.save_checkpoint(folder)

    def load_checkpoint(self, folder: Path) -> None:
        """Takes up a checkpoint in every rank (see `Trainer.load_checkpoint`)."""
        with self._busy:
            self._digests = None
            self._peers.tell(Load(folder))
            try:
                self._own.load_checkpoint(folder)
            except DigestMismatch:
                self._peers.gather(Holds)
                raise
            self._agree(self._own.digests())

    def close(self) -> None:
        """Ends the other ranks, and a step that another thread is in."""
        self._own.close()
        self._peers.kill()
        with self._busy:
            self._peers.close()

    def _send(self, batch: TrainBatch, optimiser: OptimiserConfig | None) -> None:
        data = torch.frombuffer(bytearray(pickle.dumps((batch, optimiser))), dtype=torch.uint8)
        self._peers.tell(Train(data.numel()))
        self._exchange.broadcast(data)
        self._peers.begin()

    def _accumulate(self, batch: TrainBatch) -> dict[int, Tally]:
        """Tallies of every micro-batch, when each rank has computed its own.

        Raises:
            NonFinite, DigestMismatch: what was wrong in the lowest rank; no rank applies anything.
        """
        errors: list[Exception | None] = [None]
        tallies: dict[int, Tally] = {}
        try:
            share = deal(batch.manifest, self._ranks)[0]
            tallies = self._own.accumulate(batch, share, lambda _index, _tally: self._peers.look())
        except (NonFinite, DigestMismatch) as error:
            errors = [error]
        errors += [computed.error for computed in self._peers.gather(Computed)]
        for error in errors:
            if error is not None:
                self._peers.tell(Discard())
                raise error
        return tallies | self._peers.tallies

    def _apply(
        self, batch: TrainBatch, tallies: dict[int, Tally], optimiser: OptimiserConfig | None, began: float
    ) -> StepResult:
        self._digests = None
        try:
            return self._own.apply(batch.manifest, tallies, optimiser, time.perf_counter() - began)
        except NonFinite:
            self._agree(None)
            raise

    def _agree(self, found: WeightDigests | None) -> None:
        """Every rank holds the same, None: refused the same gradient.

        Raises:
            DigestMismatch: which rank differs.
        """
        for rank, holds in enumerate(self._peers.gather(Holds), start=1):
            if holds.digests != found:
                raise DigestMismatch(
                    f"rank {rank} of the trainer holds {holds.digests}, rank 0 holds {found}, after the same updates: "
                    "one of them computes wrongly; look for faulty memory or a mixed installation"
                )
        self._digests = found
