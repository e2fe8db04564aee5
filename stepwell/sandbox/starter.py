"""Starts sandboxes and holds them: their folders, fresh trees and control groups. What factories of each kind share."""

import asyncio
import json
import secrets
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stepwell.sandbox import guest_init
from stepwell.sandbox.cgroups import Cgroup, Cgroups, GroupLimits
from stepwell.sandbox.folders import remove_tree
from stepwell.sandbox.framed_sandbox import Base, FramedSandbox
from stepwell.sandbox.frames import FrameChannel
from stepwell.sandbox.lower_trees import LowerTrees
from stepwell.sandbox.protocol import SandboxError, SandboxLimits

SPARE_MEMORY_BYTES = 256 << 20
"""Room in a control group beyond what the watch allows: so that the watch ends a command, and says why."""
STARTS_AT_ONCE = 16
"""More would only make each start late."""


@dataclass(frozen=True)
class Start:
    """How one sandbox is started."""

    command: Callable[[Path, Path], list[str]]
    """The program and its arguments, of the sandbox's own folder and the fresh tree of its files."""
    environment: Mapping[str, str]
    """Of the program outside; nothing of it is to be seen inside."""
    tells_pid: bool
    """Whether that program says early, as JSON on its standard output, which process is to be that inside."""
    base: Base
    explain: Callable[[str], str]
    """What failed and what to do about it, from what was said instead of a greeting."""


class Starter:
    """All sandboxes of one factory.

    Args:
        folder: The factory's own; receives a folder for each sandbox, and the fresh trees.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._trees = LowerTrees(folder / "trees")
        self._cgroups = Cgroups.find()
        self._held: dict[FramedSandbox, str] = {}
        self._turns = asyncio.Semaphore(STARTS_AT_ONCE)

    async def create(self, files: Mapping[str, bytes], limits: SandboxLimits, start: Start) -> FramedSandbox:
        """A sandbox that has greeted; leaves nothing behind if that fails.

        Raises:
            SandboxError: what failed and what to do about it.
            ValueError: a path of `files` leads out of the tree, or is a file and a folder.
        """
        key = self._trees.borrow(files)
        try:
            async with self._turns:
                sandbox = await self._start(self._trees.folder_of(key), limits, start)
        except BaseException:
            self._trees.give_back(key)
            raise
        self._held[sandbox] = key
        sandbox.on_destroyed(lambda: self._trees.give_back(self._held.pop(sandbox)))
        return sandbox

    async def close(self) -> None:
        """Destroys what is held, and removes the folder."""
        await asyncio.gather(*(sandbox.destroy() for sandbox in list(self._held)))
        await asyncio.to_thread(remove_tree, self.folder)

    async def _start(self, tree: Path, limits: SandboxLimits, start: Start) -> FramedSandbox:
        folder = self.folder / secrets.token_hex(8)  # seen inside: must not say which sandbox came first
        ours, theirs = socket.socketpair()
        channel = FrameChannel(ours)
        group = None
        try:
            folder.mkdir()
            group = self._group(limits)
            with theirs:
                process = _spawn(folder, theirs, start, tree)
        except OSError as error:
            channel.close()
            remove_tree(folder)
            if group is not None:
                group.remove()
            raise SandboxError(f"no sandbox under {self.folder}: {error}; free space or descriptors") from error
        sandbox = FramedSandbox(process, channel, folder, start.base, limits, group)
        entering = asyncio.create_task(asyncio.to_thread(_enter_early, process, group))
        try:
            await sandbox.ready()
            try:
                if not await entering and group is not None:
                    await asyncio.to_thread(group.add, *sandbox.inside())
            except OSError as error:
                raise SandboxError(f"the process inside cannot be put in a control group: {error}") from error
        except BaseException as error:
            await sandbox.destroy()
            await asyncio.gather(entering, return_exceptions=True)
            if isinstance(error, SandboxError):
                raise SandboxError(start.explain(str(error))) from error
            raise
        return sandbox

    def _group(self, limits: SandboxLimits) -> Cgroup | None:
        if self._cgroups is None:
            return None
        memory_bytes = guest_init.RESIDENT_FACTOR * limits.memory_bytes + SPARE_MEMORY_BYTES
        return self._cgroups.make(GroupLimits(memory_bytes, limits.processes + guest_init.SPARE_PROCESSES))


def guest_arguments(work: str, written: str, limits: SandboxLimits, environment: Mapping[str, str]) -> list[str]:
    """Arguments of the process inside (see `guest_init`).

    Args:
        work: Root of the work tree.
        written: Folder whose bytes on disk are bounded.
        limits: Of the sandbox.
        environment: Of its commands.
    """
    bounds = (limits.memory_bytes, limits.processes, limits.file_bytes)
    return [work, written, *map(str, bounds), *(f"{name}={value}" for name, value in environment.items())]


def _spawn(folder: Path, connection: socket.socket, start: Start, tree: Path) -> subprocess.Popen[bytes]:
    with open(folder / "stderr", "wb") as stderr:
        return subprocess.Popen(
            start.command(folder, tree),
            stdin=connection.fileno(),
            stdout=subprocess.PIPE if start.tells_pid else subprocess.DEVNULL,
            stderr=stderr,
            env=dict(start.environment),
            process_group=0,
        )


def _enter_early(process: subprocess.Popen[bytes], group: Cgroup | None) -> bool:
    """Puts the process inside in its group while it starts: the kernel may take 20 ms over it when there is much to do.
    False if it was not told which that is."""
    if process.stdout is None:
        return False
    with process.stdout as told:
        said = told.read()
    if group is None or not said:
        return False
    group.add(json.loads(said)["child-pid"])
    return True
