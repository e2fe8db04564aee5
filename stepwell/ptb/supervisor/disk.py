"""How much disk an agent takes, looked at now and then, beside everything else."""

import asyncio
import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

LOOK_S = 3.0
SHARE = 20
"""Between two looks lies so many times what the last one took."""


class DiskWatch:
    """Looks at folders and files, one look at a time.

    Args:
        paths: Whose bytes on disk are added up.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._looking: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self.used_bytes = 0
        """By the last look that is complete."""

    def look(self, now: float) -> None:
        """Begins a look if one is due."""
        if now >= self._not_before and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look())

    async def close(self) -> None:
        """Waits for a look that is under way."""
        if self._looking is not None:
            await self._looking

    async def _look(self) -> None:
        began = time.monotonic()
        self.used_bytes = await asyncio.to_thread(lambda: sum(disk_bytes(path) for path in self._paths))
        now = time.monotonic()
        self._not_before = now + max(LOOK_S, SHARE * (now - began))


def disk_bytes(path: Path) -> int:
    """Bytes that a file, or everything in a folder, takes on disk, files with several names once; what goes away
    meanwhile, or cannot be listed, is not counted. Links are not followed."""
    blocks: dict[tuple[int, int], int] = {}
    names = [str(path)]
    for place, folders, files in os.walk(path):
        names += [os.path.join(place, name) for name in (*folders, *files)]
    for name in names:
        with contextlib.suppress(OSError):
            status = os.lstat(name)
            blocks[(status.st_dev, status.st_ino)] = status.st_blocks
    return 512 * sum(blocks.values())
