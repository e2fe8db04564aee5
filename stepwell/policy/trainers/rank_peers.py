"""Ranks 1 and up as rank 0 sees them: processes that it starts, tells, hears, and ends."""

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import TypeVar

import stepwell
from stepwell.policy.trainers.micro_batches import Tally
from stepwell.policy.trainers.protocol import RankLost
from stepwell.policy.trainers.rank_messages import (
    Answer,
    Computed,
    Counted,
    FromRank,
    Holds,
    RankSpec,
    Ready,
    Scored,
    ToRank,
    Updated,
)

AnswerT = TypeVar("AnswerT", Ready, Computed, Holds, Updated, Scored)

START_S = 600.0
"""Longest start of a rank: it imports torch and loads the weights."""
_LOOK_S = 0.5


@dataclass
class _Peer:
    rank: int
    process: "subprocess.Popen[bytes]"
    channel: "Connection[ToRank, FromRank]"
    heard: float
    """When it last gave a sign of life, by `time.monotonic`."""
    answers: "deque[Answer]" = field(default_factory=lambda: deque[Answer]())


class RankPeers:
    """The processes of ranks 1 to n - 1. They die with the thread that made this, and with its process.

    After `RankLost` only `close` is left to call.
    """

    def __init__(self, spec: RankSpec, module: str = "stepwell.policy.trainers.rank_process") -> None:
        """Starts them; `gather(Ready)` waits until each has loaded its weights.

        Args:
            spec: what rank 0 holds; each is told the same under its own rank.
            module: what each runs; it is given the pipe's descriptor and this process.
        """
        self._timeout_s = spec.timeout_s
        self._peers: list[_Peer] = []
        self.tallies: dict[int, Tally] = {}
        """Of the micro-batches that other ranks have computed in this step."""
        try:
            for rank in range(1, spec.ranks):
                self._peers.append(_start(rank, module))
                self._tell(self._peers[-1], replace(spec, rank=rank))
        except BaseException:
            self.kill()
            self.close()
            raise

    def tell(self, message: ToRank) -> None:
        """Sends all of them a message.

        Raises:
            RankLost: one has died.
        """
        for peer in self._peers:
            self._tell(peer, message)

    def begin(self) -> None:
        """A step begins: nothing is counted yet."""
        self.tallies = {}
        for peer in self._peers:
            peer.heard = time.monotonic()

    def look(self) -> None:
        """Takes in what has come, without waiting.

        Raises:
            RankLost: one has died, or computes and has been silent for too long.
        """
        self._listen(0.0)
        self._check_silence([peer for peer in self._peers if not peer.answers], self._timeout_s)

    def gather(self, kind: type[AnswerT], timeout_s: float | None = None) -> list[AnswerT]:
        """Waits for an answer from each.

        Args:
            kind: of the answer.
            timeout_s: longest silence of one that has not answered; the recipe's unless given.

        Returns:
            The answers of ranks 1, 2, …

        Raises:
            RankLost: one has died, or been silent for too long.
        """
        began = time.monotonic()
        for peer in self._peers:
            peer.heard = max(peer.heard, began)
        while waiting := [peer for peer in self._peers if not peer.answers]:
            self._listen(_LOOK_S)
            self._check_silence(waiting, self._timeout_s if timeout_s is None else timeout_s)
        answers = [peer.answers.popleft() for peer in self._peers]
        fitting = [answer for answer in answers if isinstance(answer, kind)]
        if len(fitting) < len(answers):
            raise RankLost(f"the ranks answered {answers}, {kind.__name__} was asked for: they are out of step")
        return fitting

    def kill(self) -> None:
        """Ends the processes; may be called while another thread waits for them, which then gets `RankLost`."""
        for peer in self._peers:
            peer.process.kill()
        for peer in self._peers:
            peer.process.wait()

    def close(self) -> None:
        """After `kill`, when no thread waits for them any more."""
        for peer in self._peers:
            peer.channel.close()
        self._peers = []

    def _listen(self, wait_s: float) -> None:
        ready = wait([peer.channel for peer in self._peers], wait_s)
        for peer in self._peers:
            if peer.channel not in ready:
                continue
            try:
                while peer.channel.poll():
                    self._take(peer, peer.channel.recv())
            except (EOFError, OSError) as error:
                raise _lost(peer) from error

    def _take(self, peer: _Peer, message: FromRank) -> None:
        peer.heard = time.monotonic()
        if isinstance(message, Counted):
            self.tallies[message.index] = message.tally
        else:
            peer.answers.append(message)

    def _check_silence(self, peers: Sequence[_Peer], timeout_s: float) -> None:
        now = time.monotonic()
        for peer in peers:
            if not peer.answers and now - peer.heard > timeout_s:
                raise RankLost(
                    f"rank {peer.rank} of the trainer (pid {peer.process.pid}) gave no sign of life for "
                    f"{timeout_s:g} s: it is stopped, or one micro-batch takes longer than trainer.rank_timeout_s"
                )

    def _tell(self, peer: _Peer, message: ToRank) -> None:
        try:
            peer.channel.send(message)
        except OSError as error:
            raise _lost(peer) from error


def _start(rank: int, module: str) -> _Peer:
    ours, theirs = Pipe()
    paths = [str(Path(stepwell.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
            pass_fds=(theirs.fileno(),),
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return _Peer(rank, process, ours, time.monotonic())


def _lost(peer: _Peer) -> RankLost:
    try:
        status = f"with status {peer.process.wait(timeout=5)}"
    except subprocess.TimeoutExpired:
        status = "its pipe, though it still runs"
    return RankLost(
        f"rank {peer.rank} of the trainer (pid {peer.process.pid}) ended {status}: what it said is in the trainer "
        "worker's log; all ranks are started again"
    )
