"""What a rank of a Megatron trainer does with what it is told."""

import pickle

import torch

from stepwell.policy.trainers.dealing import deal
from stepwell.policy.trainers.megatron.shard import MegatronShard
from stepwell.policy.trainers.megatron.spec import MegatronSpec
from stepwell.policy.trainers.protocol import NonFinite, TrainBatch
from stepwell.policy.trainers.rank_exchange import RankExchange, find_meeting
from stepwell.policy.trainers.rank_main import RankChannel
from stepwell.policy.trainers.rank_messages import (
    Apply,
    Computed,
    Counted,
    Digest,
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
from stepwell.policy.weights import DigestMismatch
from stepwell.rl.config import OptimiserConfig


class MegatronRank:
    """Does what the trainer says, one message after the other."""

    def __init__(self, channel: RankChannel, spec: MegatronSpec) -> None:
        self._channel = channel
        self._spec = spec
        self._version = spec.version
        self._channel.send(Ready())
        join = self._channel.recv()
        assert isinstance(join, Join)
        meeting = find_meeting(join.port, spec.ranks, spec.timeout_s)
        self._exchange = RankExchange(meeting, spec.rank, spec.ranks, spec.timeout_s)
        self._shard = MegatronShard(spec, meeting)
        self._channel.send(Ready())

    def serve(self) -> None:
        """Until the parent closes the pipe.

        Raises:
            EOFError, ConnectionError: it did.
        """
        while True:
            match self._channel.recv():
                case Train(size_bytes):
                    self._train(size_bytes)
                case Digest():
                    self._channel.send(Holds(self._shard.digests()))
                case Probe(token_ids):
                    self._channel.send(Scored(self._shard.probe(token_ids)))
                case Export() | Save() as order:
                    self._write(order)
                case Load(folder, version):
                    self._shard.load_checkpoint(folder)
                    self._version = version
                    self._channel.send(Updated(None, 0.0, 0.0, self._shard.held()))
                case message:
                    raise TypeError(f"rank {self._spec.rank} was told {message} out of turn")

    def _train(self, size_bytes: int) -> None:
        data = torch.empty(size_bytes, dtype=torch.uint8)
        self._exchange.broadcast(data)
        given: tuple[TrainBatch, OptimiserConfig | None] = pickle.loads(data.numpy().tobytes())
        batch, optimiser = given
        layout = self._spec.layout
        share = deal(batch.manifest, layout.data)[layout.replica(self._spec.rank - 1)]
        try:
            self._shard.accumulate(batch, share, lambda index, tally: self._channel.send(Counted(index, tally)))
            self._channel.send(Computed(None))
        except (NonFinite, DigestMismatch) as error:
            self._channel.send(Computed(error))
        verdict = self._channel.recv()
        if not isinstance(verdict, Apply):
            self._shard.discard()
            return
        try:
            update = self._shard.update(batch.manifest, verdict.divisor, optimiser)
        except NonFinite as error:
            self._shard.discard()
            self._channel.send(Updated(error, 0.0, 0.0, {}))
            return
        self._version = batch.manifest.version
        self._channel.send(Updated(None, update.norm, update.learning_rate, self._shard.held()))

    def _write(self, order: Export | Save) -> None:
        try:
            if isinstance(order, Export):
                self._shard.export(order.folder)
            else:
                self._shard.save_checkpoint(order.folder, self._version, order.digests)
            self._channel.send(Computed(None))
        except OSError as error:
            self._channel.send(Computed(error))
