"""How a harness that is a program of its own ended, and what runs one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class HarnessEnd:
    """How a harness ended."""

    returncode: int
    """Exit status, or minus the signal's number."""
    timed_out: bool
    """Whether it was killed at its deadline."""
    output: str
    """The last part of standard output and error."""


class RunHarness(Protocol):
    """Runs a harness to its end."""

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        stdin: bytes,
        timeout_s: float,
    ) -> HarnessEnd:
        """Args:
            argv: Program by its full path, and arguments.
            environment: All of it: the gateway's address and the rollout's token among it, no secret of ours.
            folder: Its current folder.
            stdin: What it reads.
            timeout_s: When it is killed.

        Raises:
            OSError: it cannot be started.
        """
        ...
