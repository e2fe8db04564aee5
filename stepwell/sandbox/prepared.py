"""What all sandboxes of a factory share: laid out when the first is asked for, removed when the factory is closed."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from stepwell.sandbox.folders import make_owned_folder, remove_tree
from stepwell.sandbox.protocol import SandboxError
from stepwell.sandbox.starter import Starter


class Prepared(Protocol):
    """What is shared; its starter holds the sandboxes, and removes the folder with them."""

    @property
    def starter(self) -> Starter:
        """Of the factory's folder."""
        ...


PreparedT = TypeVar("PreparedT", bound=Prepared)


class PreparedOnce(Generic[PreparedT]):
    """Prepares at most once at a time, and again after it was closed.

    Args:
        root: Folder for the private folders of this and other live factories; made if missing.
        prepare: Fills a factory's folder, which is there and empty; if it fails the folder is removed.
    """

    def __init__(self, root: Path, prepare: Callable[[Path], Awaitable[PreparedT]]) -> None:
        self._root = root
        self._prepare = prepare
        self._made: PreparedT | None = None
        self._lock = asyncio.Lock()

    async def get(self) -> PreparedT:
        """What was prepared, now if it was not.

        Raises:
            SandboxError: there can be no folder, or what `prepare` raises.
        """
        async with self._lock:
            if self._made is None:
                try:
                    folder = make_owned_folder(self._root)
                except OSError as error:
                    raise SandboxError(
                        f"no folder for sandboxes under {self._root}: {error}; give another root"
                    ) from error
                try:
                    self._made = await self._prepare(folder)
                except BaseException:
                    remove_tree(folder)
                    raise
            return self._made

    async def close(self) -> None:
        """Destroys every sandbox that is still held, and removes the folder. Idempotent."""
        async with self._lock:
            if self._made is not None:
                await self._made.starter.close()
                self._made = None
