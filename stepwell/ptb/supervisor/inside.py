"""The supervisor's hold on what runs inside: starts it, stops and continues it, and sees to its end."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from stepwell.ptb.supervisor.sandbox import AgentSandbox
from stepwell.sandbox.bwrap_program import without_namespaces
from stepwell.sandbox.cgroups import Cgroup, Cgroups, GroupLimits
from stepwell.sandbox.frames import ChannelClosed, FrameChannel
from stepwell.sandbox.process_tree import depth_of, descendants, ends_within
from stepwell.sandbox.protocol import SandboxError

READY_TIMEOUT_S = 120.0
"""For what takes milliseconds on a quiet machine."""
END_TIMEOUT_S = 60.0
"""For the kernel to take down a namespace whose first process was killed."""


class Inside:
    """A sandbox that runs, and its first process.

    Args:
        process: What was started outside.
        first: A descriptor of the process inside that everything else inside dies with.
        channel: To that process.
        listening: Where the network begins inside; None without one.
        group: What bounds everything inside; None where there are no control groups.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        first: int,
        channel: FrameChannel,
        listening: socket.socket | None,
        group: Cgroup | None,
    ) -> None:
        self._process = process
        self._first = first
        self._channel = channel
        self._group = group
        self._answers: dict[bytes, asyncio.Future[None]] = {}
        self.listening = listening
        self.bounded = group is not None
        """Whether a control group holds memory and processes."""
        self.on_exit: Callable[[int], None] = lambda status: None
        """Called with the status of each command."""
        self.on_empty: Callable[[], None] = lambda: None
        """Called when nothing is left after `terminate`."""

    @property
    def stdout(self) -> IO[bytes]:
        """What the agent's commands write there."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def stderr(self) -> IO[bytes]:
        """What the agent's commands write there."""
        assert self._process.stderr is not None
        return self._process.stderr

    async def run(self, argv: Sequence[str], environment: Mapping[str, str], stdin: bytes) -> None:
        """Starts a command.

        Raises:
            ChannelClosed: the sandbox is gone.
        """
        settings = [os.fsencode(f"{name}={value}") for name, value in environment.items()]
        await self._channel.send([b"run", stdin, b"%d" % len(settings), *settings, *map(os.fsencode, argv)])

    async def freeze(self) -> None:
        """Stops everything inside at once; done when it returns.

        Raises:
            ChannelClosed: the sandbox is gone.
        """
        await self._ask(b"freeze", b"frozen")

    async def thaw(self) -> None:
        """Lets everything go on that `freeze` stopped.

        Raises:
            ChannelClosed: the sandbox is gone.
        """
        await self._ask(b"thaw", b"thawed")

    async def terminate(self) -> None:
        """Sends SIGTERM to everything inside.

        Raises:
            ChannelClosed: the sandbox is gone.
        """
        await self._channel.send([b"terminate"])

    async def listen(self) -> None:
        """Hears what the first process says, until that has ended."""
        try:
            while True:
                word, *rest = await self._channel.receive()
                if word == b"exited":
                    self.on_exit(int(rest[0]))
                elif word == b"empty":
                    self.on_empty()
                elif word in self._answers:
                    self._answers.pop(word).set_result(None)
        except ChannelClosed as error:
            for answer in self._answers.values():
                answer.set_exception(error)
            self._answers.clear()

    async def kill(self) -> None:
        """Kills everything inside; nothing of it is left when this returns. Idempotent.

        Raises:
            SandboxError: the kernel does not take it down.
        """
        if self._first >= 0:
            _kill(self._first)
        if not await ends_within(self._process, END_TIMEOUT_S):
            self._process.kill()
            if not await ends_within(self._process, END_TIMEOUT_S):
                raise SandboxError(f"process {self._process.pid} did not end after SIGKILL: look at its state")
        self._process.wait()
        if self._first >= 0:
            os.close(self._first)
            self._first = -1
        if self._group is not None:
            await asyncio.to_thread(self._group.remove)

    def close(self) -> None:
        """Frees descriptors, once all is over."""
        self._channel.close()
        if self.listening is not None:
            self.listening.close()

    async def _ask(self, request: bytes, answer: bytes) -> None:
        told = asyncio.get_running_loop().create_future()
        self._answers[answer] = told
        await self._channel.send([request])
        await told


async def start_inside(sandbox: AgentSandbox, limits: GroupLimits, log: Path, *, network: bool) -> Inside:
    """Starts a sandbox around `agent_guest`; nothing of the agent's runs in it yet.

    Args:
        sandbox: How it is started.
        limits: Of everything inside together.
        log: What the sandbox's program says goes there until the agent's output follows.
        network: Whether it is to have one, through `Inside.listening`.

    Raises:
        SandboxError: what failed and what to do about it.
    """
    groups = await asyncio.to_thread(Cgroups.find)
    ours, theirs = socket.socketpair()
    group: Cgroup | None = None
    try:
        group = groups.make(limits) if groups is not None else None
        with theirs:
            process = _spawn(sandbox, theirs)
    except OSError as error:
        ours.close()
        if group is not None:
            group.remove()
        raise SandboxError(f"no sandbox for the agent: {error}") from error
    try:
        listening = await asyncio.to_thread(_await_ready, ours, network=network)
        first = _innermost(process.pid)
        if group is not None:
            await asyncio.to_thread(group.add, first)
        return Inside(process, os.pidfd_open(first), FrameChannel(ours), listening, group)
    except (OSError, ValueError) as error:
        ours.close()
        process.kill()
        _, said = process.communicate()
        if group is not None:
            group.remove()
        words = said.decode(errors="replace").strip() or str(error)
        log.write_text(words + "\n")
        advice = without_namespaces(words) or f"see {log}"
        raise SandboxError(f"no sandbox for the agent could be started: {words}; {advice}") from error


def _spawn(sandbox: AgentSandbox, connection: socket.socket) -> subprocess.Popen[bytes]:
    """By the thread that calls, which must live as long as this process: the sandbox dies with it."""
    return subprocess.Popen(
        sandbox.command,
        stdin=connection.fileno(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(sandbox.outside),
        process_group=0,
    )


def _await_ready(connection: socket.socket, *, network: bool) -> socket.socket | None:
    connection.settimeout(READY_TIMEOUT_S)
    said, descriptors, _, _ = socket.recv_fds(connection, 4096, 1)
    if not said.endswith(b"ready") or len(descriptors) != network:
        raise ValueError(f"the process inside greeted with {said!r} and {len(descriptors)} sockets")
    return socket.socket(fileno=descriptors[0]) if descriptors else None


def _innermost(pid: int) -> int:
    """The process in the innermost PID namespace below one."""
    depths = {found: depth_of(found) for found in descendants(pid)}
    return max(depths, key=depths.__getitem__)


def _kill(descriptor: int) -> None:
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except ProcessLookupError:
        return
