"""How much disk an agent's folders take, looked at now and then, beside everything else."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

LOOK_S = 3.0
SHARE = 20
"""Between two looks lies so many times what the last one took."""


class DiskWatch:
    """Looks at folders, one look at a time.

    Args:
        folders: Whose bytes on disk are added up.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
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
        self.used_bytes = await asyncio.to_thread(lambda: sum(disk_bytes(folder) for folder in self._folders))
        now = time.monotonic()
        self._not_before = now + max(LOOK_S, SHARE * (now - began))


def disk_bytes(folder: Path) -> int:
    """Bytes that everything in a folder takes on disk, files with several names once; what goes away meanwhile, or
    cannot be listed, is not counted. Links are not followed."""
    total = 0
    seen: set[tuple[int, int]] = set()
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            try:
                status = os.lstat(os.path.join(place, name))
            except OSError:
                continue
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                total += status.st_blocks * 512
    return total
