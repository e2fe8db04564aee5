"""What a sandbox is, whichever program provides it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

WORK = "/work"
"""Where the work tree is unless its creator says otherwise."""


@dataclass(frozen=True)
class SandboxLimits:
    """Bounds of one sandbox."""

    wall_clock_s: float = 600.0
    """Life of the sandbox; after it every process inside is killed."""
    memory_bytes: int = 1 << 30
    """Address space of one process inside, in bytes."""
    processes: int = 64
    """Processes and threads alive at once."""
    file_bytes: int = 64 << 20
    """Largest file that may be written, in bytes."""
    output_bytes: int = 64 << 10
    """Most bytes of output kept of one command; the rest is dropped and counted."""


class ExecEnd(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    """By itself; the return code says how."""
    TIMEOUT = "timeout"
    """Killed at its deadline."""
    OUTPUT_LIMIT = "output_limit"
    """Killed for output that went on after the cap was passed many times over."""


@dataclass(frozen=True)
class ExecResult:
    """Result of one command."""

    end: ExecEnd
    returncode: int
    """Exit status, or minus the signal's number."""
    output: bytes
    """Standard output and error together, at most `output_bytes`: head and tail with the number of bytes left out."""
    duration_s: float
    """Measured wall clock."""


class SandboxError(Exception):
    """The sandbox itself failed: infrastructure, never a score. Says what failed and what to do."""


class Sandbox(Protocol):
    """A running sandbox around one work tree; the current folder of every command is the tree's root."""

    async def exec(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"") -> ExecResult:
        """Runs a command; what it leaves in the background dies with the sandbox.

        Raises:
            SandboxError: the sandbox is gone.
        """
        ...

    async def read_file(self, path: str) -> bytes:
        """Content of a regular file of the work tree, never followed out of it.

        Raises:
            FileNotFoundError: no such regular file inside the tree.
        """
        ...

    async def write_file(self, path: str, data: bytes) -> None:
        """Writes a file of the work tree, making folders as needed; refuses paths that lead out of it (ValueError)."""
        ...

    async def tree_digest(self) -> str:
        """SHA-256 over path, type, mode, content and link target of everything in the work tree, sorted by path;
        not times, `.git`, `__pycache__`, `.pytest_cache`."""
        ...

    async def settle(self) -> None:
        """Takes the tree as it is for the one that the sandbox was created with."""
        ...

    async def changed_files(self) -> dict[str, bytes | None]:
        """What differs from the tree that the sandbox was created with: path to content, None if it was removed.
        Regular files only; of anything else the path is named in a SandboxError-free way: it is left out."""
        ...

    async def destroy(self) -> None:
        """Kills everything inside and removes the work tree. Idempotent; confirmed when it returns."""
        ...


class SandboxFactory(Protocol):
    """Makes sandboxes of one kind."""

    async def create(
        self,
        files: Mapping[str, bytes],
        limits: SandboxLimits,
        image: str | None = None,
        *,
        work: str = WORK,
        hidden: Sequence[str] = (),
    ) -> Sandbox:
        """A sandbox whose work tree holds `files` (relative POSIX path to content), mode 0644, folders 0755.

        Args:
            files: Laid over what the image has at `work`.
            limits: Of this sandbox.
            image: System that the sandbox sees: path of a SIF or of an unpacked root. None for the factory's own.
            work: Root of the work tree inside, an absolute path.
            hidden: Absolute paths in the image. Where it has a folder or a file at one, or a link to one, an empty
                folder or file stands in the place of it, which nothing inside can take away or write to.

        Raises:
            SandboxError: it could not be made: what failed and what to do about it.
            ValueError: `files` make no tree, or this kind of sandbox takes no image, or needs one, or hides nothing.
        """
        ...

    async def close(self) -> None:
        """Destroys every sandbox that this factory still holds."""
        ...
