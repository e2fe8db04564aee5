"""The kind of sandbox that a task calls for: Apptainer if it names an image, else bubblewrap."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from stepwell.sandbox.apptainer import ApptainerFactory
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import WORK, Sandbox, SandboxLimits


class SandboxesByImage:
    """Makes sandboxes of both kinds; a `SandboxFactory`. A machine without Apptainer can serve tasks without images.

    Args:
        root: As of `BubblewrapFactory` and `ApptainerFactory`.
    """

    def __init__(self, root: Path) -> None:
        self._without = BubblewrapFactory(root)
        self._within = ApptainerFactory(root)

    async def create(
        self,
        files: Mapping[str, bytes],
        limits: SandboxLimits,
        image: str | None = None,
        *,
        work: str = WORK,
        hidden: Sequence[str] = (),
    ) -> Sandbox:
        """A sandbox in the image, or in this machine's own system if none is named.

        Raises:
            SandboxError: it could not be made: what failed and what to do about it.
            ValueError: a path of `files` leads out of the tree, or is a file and a folder; or something is to be
                hidden and no image is named.
        """
        if image is None:
            return await self._without.create(files, limits, work=work, hidden=hidden)
        return await self._within.create(files, limits, image, work=work, hidden=hidden)

    async def close(self) -> None:
        """Destroys every sandbox that this factory still holds. Idempotent."""
        await self._without.close()
        await self._within.close()
