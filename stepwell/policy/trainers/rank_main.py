"""How a rank's process begins: whom it belongs to, and how it hears rank 0."""

import ctypes
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeAlias

from stepwell.policy.trainers.rank_messages import FromRank, RankSpec, ToRank

_PR_SET_PDEATHSIG = 1

RankChannel: TypeAlias = "Connection[FromRank, ToRank]"
Serve = Callable[["Connection[FromRank, ToRank]", RankSpec], None]
"""Does what rank 0 says until it closes the pipe, which raises EOFError or ConnectionError."""


def run_rank(serve: Serve, descriptor: int, parent: int) -> int:
    """Serves rank 0 until it closes the pipe or ends.

    Args:
        serve: what the rank does.
        descriptor: of the pipe.
        parent: process of rank 0.

    Returns:
        The exit status.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        return 1  # it ended before the kernel could be asked
    channel: RankChannel = Connection(descriptor)
    try:
        spec = channel.recv()
        assert isinstance(spec, RankSpec)
        serve(channel, spec)
    except (EOFError, ConnectionError):
        pass  # rank 0 has closed the trainer
    return 0
