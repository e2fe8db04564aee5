"""How the ranks of one trainer pass tensors: gloo on this machine's loopback."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch.distributed import (
    ProcessGroupGloo,
    TCPStore,  # pyright: ignore[reportPrivateImportUsage]  # documented, but not in torch's own list of names
)

from stepwell.policy.trainers.protocol import RankLost

_HOST = "127.0.0.1"
_INTERFACE = "lo"
_PIECE = 1 << 22
"""Elements exchanged at once: what bounds the memory of an exchange, times the number of ranks."""


def open_meeting(ranks: int, timeout_s: float) -> TCPStore:
    """Where ranks meet, on a free port: rank 0 keeps it open."""
    return TCPStore(_HOST, 0, ranks, is_master=True, timeout=timedelta(seconds=timeout_s), wait_for_workers=False)


def find_meeting(port: int, ranks: int, timeout_s: float) -> TCPStore:
    """The meeting that rank 0 has opened."""
    return TCPStore(_HOST, port, ranks, is_master=False, timeout=timedelta(seconds=timeout_s), wait_for_workers=False)


class RankExchange:
    """One rank's end. Every method is called by all ranks, and returns when all have called it.

    A rank that dies ends the others' calls at once, one that hangs after the timeout. Making one sets the interface
    that gloo uses in this process.
    """

    def __init__(self, meeting: TCPStore, rank: int, ranks: int, timeout_s: float) -> None:
        """Meets the others.

        Raises:
            RankLost: not all came in time.
        """
        self._ranks = ranks
        os.environ["GLOO_SOCKET_IFNAME"] = _INTERFACE
        try:
            self._group: Any = ProcessGroupGloo(meeting, rank, ranks, timedelta(seconds=timeout_s))
        except RuntimeError as error:
            raise RankLost(f"the {ranks} ranks of the trainer did not all meet: {error}") from error

    def broadcast(self, data: Tensor) -> None:
        """Fills a tensor with rank 0's.

        Raises:
            RankLost: a rank died or fell silent.
        """
        try:
            self._group.broadcast(data, 0).wait()
        except RuntimeError as error:
            raise RankLost(f"a rank was lost while the batch was sent: {error}") from error

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Overwrites contiguous tensors with their sum over all ranks, added in the order of ranks: each rank gets the
        same bits, whoever was first.

        Raises:
            RankLost: a rank died or fell silent.
        """
        for tensor in tensors:
            for piece in tensor.view(-1).split(_PIECE):
                parts = [torch.empty_like(piece) for _ in range(self._ranks)]
                try:
                    self._group.allgather([parts], [piece]).wait()
                except RuntimeError as error:
                    raise RankLost(f"a rank was lost while gradients were exchanged: {error}") from error
                piece.copy_(parts[0])
                for part in parts[1:]:
                    piece.add_(part)
