"""Rank 1 or higher of a trainer: a process that rank 0 starts, tells what to do through a pipe, and ends.

    python -m stepwell.policy.trainers.rank_process DESCRIPTOR PARENT

It holds the same weights and optimiser as rank 0, computes the gradients of its share of the micro-batches, and applies
the same update. It dies with its parent; signals to the whole group are its parent's affair.
"""

import pickle
import sys

import torch

from stepwell.policy.trainers.dealing import deal
from stepwell.policy.trainers.protocol import NonFinite, TrainBatch
from stepwell.policy.trainers.rank_exchange import RankExchange, find_meeting
from stepwell.policy.trainers.rank_main import RankChannel, run_rank
from stepwell.policy.trainers.rank_messages import (
    Apply,
    Computed,
    Counted,
    Holds,
    Join,
    Load,
    RankSpec,
    Ready,
    Train,
)
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.policy.weights import DigestMismatch
from stepwell.rl.config import OptimiserConfig


class _Rank:
    """Does what rank 0 says, one message after the other."""

    def __init__(self, channel: RankChannel, spec: RankSpec) -> None:
        self._channel = channel
        self._spec = spec
        self._trainer = TorchTrainer.from_folder(
            spec.folder,
            spec.optimiser,
            spec.grpo,
            threads=spec.threads,
            compute_dtype=spec.compute_dtype,
            freeze_router=spec.freeze_router,
            version=spec.version,
        )
        self._channel.send(Ready())
        join = self._channel.recv()
        assert isinstance(join, Join)
        meeting = find_meeting(join.port, spec.ranks, spec.timeout_s)
        self._exchange = RankExchange(meeting, spec.rank, spec.ranks, spec.timeout_s)
        self._channel.send(Ready())

    def serve(self) -> None:
        """Until the parent closes the pipe.

        Raises:
            EOFError, ConnectionError: it did.
        """
        while True:
            message = self._channel.recv()
            if isinstance(message, Train):
                self._train(message)
            elif isinstance(message, Load):
                self._load(message)
            else:
                raise TypeError(f"rank {self._spec.rank} was told {message} out of turn")

    def _train(self, message: Train) -> None:
        data = torch.empty(message.size_bytes, dtype=torch.uint8)
        self._exchange.broadcast(data)
        given: tuple[TrainBatch, OptimiserConfig | None] = pickle.loads(data.numpy().tobytes())
        batch, optimiser = given
        share = deal(batch.manifest, self._spec.ranks)[self._spec.rank]
        try:
            self._trainer.accumulate(batch, share, lambda index, tally: self._channel.send(Counted(index, tally)))
            self._channel.send(Computed(None))
        except (NonFinite, DigestMismatch) as error:
            self._channel.send(Computed(error))
        verdict = self._channel.recv()
        if not isinstance(verdict, Apply):
            self._trainer.discard()
            return
        self._exchange.add_up(self._trainer.gradients())
        try:
            self._trainer.update(batch.manifest, verdict.divisor, optimiser)
        except NonFinite:
            self._trainer.discard()
            self._channel.send(Holds(None))
            return
        self._channel.send(Holds(self._trainer.digests()))

    def _load(self, message: Load) -> None:
        try:
            self._trainer.load_checkpoint(message.folder)
        except DigestMismatch:
            self._channel.send(Holds(None))
            return
        self._channel.send(Holds(self._trainer.digests()))


def _serve(channel: RankChannel, spec: RankSpec) -> None:
    _Rank(channel, spec).serve()


if __name__ == "__main__":
    sys.exit(run_rank(_serve, int(sys.argv[1]), int(sys.argv[2])))
