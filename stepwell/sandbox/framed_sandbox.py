"""The client of one running sandbox, of whichever kind: it speaks in frames with the process inside."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from stepwell.sandbox.cgroups import Cgroup
from stepwell.sandbox.folders import remove_tree
from stepwell.sandbox.frames import ChannelClosed, ChannelCorrupt, FrameChannel
from stepwell.sandbox.process_tree import depth_of, descendants, ends_within
from stepwell.sandbox.protocol import ExecEnd, ExecResult, SandboxError, SandboxLimits
from stepwell.sandbox.tree import IGNORED_NAMES, Kind, TreeEntry, check_relative_path

ANSWER_TIMEOUT_S = 120.0
"""For what takes milliseconds, and for the process inside to end a command after its deadline."""
LISTING_TIMEOUT_S = 900.0
"""For the process inside to read a work tree: the first time all of it, some GB at most."""
END_TIMEOUT_S = 10.0
CHANGED_LIMIT_BYTES = 64 << 20
"""Content of all changed files together; in the order of their paths, one that would pass it is left out."""

Base = Callable[[], Awaitable[Mapping[bytes, bytes]]]
"""Gives the tree that a sandbox was created with: path of each regular file to the SHA-256 of its content."""

_KINDS: dict[bytes, Kind] = {b"f": "file", b"d": "folder", b"l": "link", b"o": "other"}


class FramedSandbox:
    """A running sandbox; a `Sandbox`. Requests are served one at a time, in the order in which they came.

    Args:
        process: What was started outside; it ends when the sandbox has ended.
        channel: To the process inside.
        folder: All that the sandbox has on disk, with the file `stderr` of `process`; removed with it.
        base: Asked when it is first needed.
        limits: Of this sandbox.
        group: Control group for everything inside; removed with it.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        channel: FrameChannel,
        folder: Path,
        base: Base,
        limits: SandboxLimits,
        group: Cgroup | None,
    ) -> None:
        self._process = process
        self._channel = channel
        self._folder = folder
        self._base = base
        self._limits = limits
        self.group = group
        """Control group that everything inside is in once it is ready; None where there are none."""
        self._lock = asyncio.Lock()
        self._settled = False
        self._gone: str | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None
        self._on_destroyed: Callable[[], None] | None = None

    @property
    def pid(self) -> int:
        """Process id of what was started outside, which waits for the sandbox to end."""
        return self._process.pid

    async def ready(self) -> None:
        """Waits for the process inside to say that it is there; then the wall clock runs.

        Raises:
            SandboxError: it did not start, and what was said instead.
        """
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                greeting = await self._channel.receive()
        except (ChannelClosed, TimeoutError) as error:
            said = (self._folder / "stderr").read_text(errors="replace").strip()
            raise SandboxError(said or f"the process inside did not start ({type(error).__name__})") from error
        if greeting != [b"ready"]:
            raise SandboxError(f"the process inside greeted with {greeting!r}")
        self._clock = asyncio.get_running_loop().call_later(
            self._limits.wall_clock_s, self._end_service, f"its wall clock of {self._limits.wall_clock_s} s has ended"
        )

    def on_destroyed(self, callback: Callable[[], None]) -> None:
        """Calls `callback` once, when the sandbox has been destroyed."""
        self._on_destroyed = callback

    async def exec(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"") -> ExecResult:
        """Runs a command; what it leaves in the background is killed when it ends.

        Raises:
            SandboxError: the sandbox is gone.
            ValueError: no command, or an argument with a NUL.
        """
        if not argv or any("\0" in argument for argument in argv):
            raise ValueError(f"a command is a list of arguments without NUL, not {list(argv)!r}")
        request = [b"exec", b"%d" % round(timeout_s * 1e6), b"%d" % self._limits.output_bytes, stdin]
        answer = await self._ask([*request, *map(os.fsencode, argv)], patience_s=timeout_s + ANSWER_TIMEOUT_S)
        end, code, microseconds, output = answer
        return ExecResult(ExecEnd(end.decode()), int(code), output, int(microseconds) / 1e6)

    async def read_file(self, path: str) -> bytes:
        """Content of a regular file of the work tree, never followed out of it.

        Raises:
            FileNotFoundError: no such regular file inside the tree, or one over the limit of a file.
            SandboxError: the sandbox is gone.
        """
        answer = await self._ask([b"read", os.fsencode(path)])
        if answer[0] != b"ok":
            raise FileNotFoundError(f"no regular file {path!r} inside the work tree")
        return answer[1]

    async def write_file(self, path: str, data: bytes) -> None:
        """Writes a file of the work tree, making folders as needed; a file that exists keeps its mode.

        Raises:
            ValueError: the path leads out of the tree, through a link or to what is no file, or the file is too large.
            SandboxError: the sandbox is gone.
        """
        check_relative_path(path)
        if len(data) > self._limits.file_bytes:
            raise ValueError(f"{len(data)} bytes for {path!r}; a file may have {self._limits.file_bytes}")
        answer = await self._ask([b"write", os.fsencode(path), data])
        if answer[0] != b"ok":
            raise ValueError(f"{path!r} cannot be written: {answer[1].decode(errors='replace')}")

    async def tree_digest(self) -> str:
        """Digest of the work tree as it is, by `stepwell.sandbox.tree.digest_of_entries`.

        Raises:
            SandboxError: the sandbox is gone.
        """
        _, digest = await self._ask([b"digest"], patience_s=LISTING_TIMEOUT_S)
        return digest.hex()

    async def content_digests(self) -> dict[bytes, bytes]:
        """Path of each regular file of the work tree as it is, to the SHA-256 of its content.

        Raises:
            SandboxError: the sandbox is gone.
        """
        return {entry.path: entry.payload for entry in await self._list() if entry.kind == "file"}

    async def settle(self) -> None:
        """Takes the work tree as it is for the one that it was created with.

        Raises:
            SandboxError: the sandbox is gone.
        """
        await self._ask([b"settle"], patience_s=LISTING_TIMEOUT_S)
        self._settled = True

    async def changed_files(self) -> dict[str, bytes | None]:
        """What differs in content from the fresh tree: path to content, None if there is no such regular file any more.
        Left out: names that are not UTF-8, and what goes beyond `CHANGED_LIMIT_BYTES`.

        Raises:
            SandboxError: the sandbox is gone.
        """
        changed: dict[str, bytes | None] = {}
        total = 0
        for path in await self._changed_paths():
            try:
                name = path.decode()
            except UnicodeDecodeError:
                continue
            if not IGNORED_NAMES.isdisjoint(name.split("/")):
                continue
            try:
                content = await self.read_file(name)
            except FileNotFoundError:
                changed[name] = None
                continue
            total += len(content)
            if total <= CHANGED_LIMIT_BYTES:
                changed[name] = content
        return changed

    async def _changed_paths(self) -> list[bytes]:
        """Of the regular files that are or were, those whose content differs, in order."""
        if self._settled:
            return (await self._ask([b"changes"], patience_s=LISTING_TIMEOUT_S))[1:]
        now, before = await self.content_digests(), await self._base()
        return [path for path in sorted(now.keys() | before.keys()) if now.get(path) != before.get(path)]

    async def destroy(self) -> None:
        """Kills everything inside and removes the work tree. Idempotent; confirmed when it returns.

        Raises:
            SandboxError: the processes inside did not end.
        """
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        self._end_service("it was destroyed")
        if not await ends_within(self._process, END_TIMEOUT_S):
            # The process inside did not see its channel close. Killing it kills all, and its waiting parent ends.
            for child in self.inside():
                os.kill(child, signal.SIGKILL)
            if not await ends_within(self._process, END_TIMEOUT_S):
                raise SandboxError(f"process {self.pid} did not end {END_TIMEOUT_S} s after SIGKILL: look at its state")
        self._process.wait()
        async with self._lock:  # A request under way has seen the end of the channel by now, or does so next.
            self._channel.close()
        await asyncio.to_thread(self._remove)
        if self._on_destroyed is not None:
            self._on_destroyed()

    def inside(self) -> list[int]:
        """The processes inside, as the host numbers them: those in the innermost PID namespace below this process."""
        depths = {pid: depth_of(pid) for pid in descendants(self.pid)}
        return [pid for pid, depth in depths.items() if depth == max(depths.values())]

    def _remove(self) -> None:
        if self.group is not None:
            self.group.remove()
        remove_tree(self._folder)

    def _end_service(self, reason: str) -> None:
        """Refuses further requests and hangs up, which ends all processes inside."""
        if self._gone is None:
            self._gone = reason
        if self._clock is not None:
            self._clock.cancel()
        self._channel.hang_up()

    async def _list(self) -> list[TreeEntry]:
        answer = await self._ask([b"list"], patience_s=LISTING_TIMEOUT_S)
        fields = iter(answer[1:])
        return [
            TreeEntry(path, _KINDS[letter], int(mode, 8), payload)
            for letter, mode, path, payload in zip(fields, fields, fields, fields, strict=True)
        ]

    async def _ask(self, request: Sequence[bytes], patience_s: float = ANSWER_TIMEOUT_S) -> list[bytes]:
        async with self._lock:
            if self._gone is not None:
                raise SandboxError(f"the sandbox is gone: {self._gone}")
            try:
                async with asyncio.timeout(patience_s):
                    await self._channel.send(request)
                    return await self._channel.receive()
            except BaseException as error:
                # Whatever it was, an answer may still be on its way: the channel is of no more use.
                self._end_service(f"a request ended by {type(error).__name__}")
                if isinstance(error, (ChannelClosed, ChannelCorrupt, TimeoutError)):
                    raise SandboxError(
                        f"the sandbox is gone: {self._gone}; start the work over in a new one"
                    ) from error
                raise
