"""Sandboxes by bubblewrap: one long-lived process tree each, its work tree an overlay over a shared fresh one.

A sandbox dies with the thread that created it (the parent-death signal is the thread's): use a factory from the event
loop of a thread that lives as long as its sandboxes. What a killed worker leaves on disk, `sweep` removes.

A watch inside bounds, every 20 ms, the number of processes and the memory of all together, and every 250 ms the bytes
in the work tree (see `guest_init`). Where this process may make control groups, the kernel holds the first two to
little more; where it may not, and it is root's, whose processes nothing else counts, the watch stands alone.
"""

import asyncio
import py_compile
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from stepwell.sandbox import guest_init
from stepwell.sandbox.bwrap_program import ISOLATION, find_bwrap, without_namespaces
from stepwell.sandbox.framed_sandbox import FramedSandbox
from stepwell.sandbox.lower_trees import digests_of_files
from stepwell.sandbox.prepared import PreparedOnce
from stepwell.sandbox.protocol import WORK, SandboxError, SandboxLimits
from stepwell.sandbox.starter import Start, Starter, guest_arguments
from stepwell.sandbox.system import TEST_LIBRARIES, System, describe_system

GUEST_INIT = "/opt/guest_init.pyc"


class BubblewrapFactory:
    """Makes bubblewrap sandboxes; a `SandboxFactory`.

    Args:
        root: Folder for the private folders of this and other live factories; made if missing. On a disk that can
            carry an overlay's upper layer (not itself an overlay), else work trees are copied instead.
        libraries: Import names that stand in the sandboxes' site-packages.
    """

    def __init__(self, root: Path, libraries: Sequence[str] = TEST_LIBRARIES) -> None:
        self._shared = PreparedOnce(root, partial(_prepare, libraries=tuple(libraries)))

    async def create(
        self,
        files: Mapping[str, bytes],
        limits: SandboxLimits,
        image: str | None = None,
        *,
        work: str = WORK,
        hidden: Sequence[str] = (),
    ) -> FramedSandbox:
        """A sandbox around a fresh tree of `files`, ready for its first command.

        Raises:
            SandboxError: it could not be made: what failed and what to do about it.
            ValueError: a path of `files` leads out of the tree, or is a file and a folder; or an image is asked for, or
                to hide what an image has.
        """
        if image is not None:
            raise ValueError(f"the image {image} is asked for, and bubblewrap takes none: use sandboxes of Apptainer")
        if hidden:
            raise ValueError(f"{', '.join(hidden)} are to be hidden, and there is no image that has them: name it")
        prepared = await self._shared.get()
        return await prepared.create(files, limits, work)

    async def close(self) -> None:
        """Destroys every sandbox that this factory still holds, and removes its folder. Idempotent."""
        await self._shared.close()


class _Prepared:
    """What all sandboxes of a factory share."""

    def __init__(self, bwrap: Path, folder: Path, system: System, *, overlay: bool) -> None:
        self.starter = Starter(folder)
        self._bwrap = bwrap
        self._system = system
        self._guest = folder / "guest_init.pyc"
        self.overlay = overlay

    async def create(self, files: Mapping[str, bytes], limits: SandboxLimits, work: str) -> FramedSandbox:
        """Starts a sandbox; raises as `BubblewrapFactory.create`."""

        async def base() -> dict[bytes, bytes]:
            return digests_of_files(files)

        start = Start(partial(self._command, limits=limits, work=work), {}, True, base, _explain)
        return await self.starter.create(files, limits, start)

    def _command(self, folder: Path, lower: Path, *, limits: SandboxLimits, work: str) -> list[str]:
        command = [str(self._bwrap), *ISOLATION, "--info-fd", "1", "--clearenv", *self._system.mounts]
        environment = dict(self._system.environment)
        for name, value in environment.items():
            command += ["--setenv", name, value]
        if self.overlay:
            upper, scratch = folder / "upper", folder / "scratch"
            upper.mkdir()
            scratch.mkdir()
            command += ["--overlay-src", str(lower), "--overlay", str(upper), str(scratch), work]
        else:
            tree = folder / "tree"
            shutil.copytree(lower, tree)
            command += ["--bind", str(tree), work]
        command += ["--ro-bind", str(self._guest), GUEST_INIT]
        command += ["--remount-ro", "/dev", "--remount-ro", "/"]
        command += [self._system.python, "-I", "-S", GUEST_INIT]
        return [*command, *guest_arguments(work, work, limits, environment)]


async def _prepare(folder: Path, libraries: Sequence[str]) -> _Prepared:
    """Composes the system and finds out what this machine allows, by starting a sandbox."""
    bwrap = find_bwrap()
    system = await asyncio.to_thread(describe_system, folder, libraries)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(guest_init.__file__, str(folder / "guest_init.pyc"), doraise=True, invalidation_mode=mode)
    prepared = _Prepared(bwrap, folder, system, overlay=True)
    try:
        await _start_once(prepared)
    except SandboxError:  # The kernel or the disk may refuse the overlay alone; any other cause shows again.
        prepared.overlay = False
        await _start_once(prepared)
    return prepared


async def _start_once(prepared: _Prepared) -> None:
    sandbox = await prepared.create({}, SandboxLimits(), WORK)
    await sandbox.destroy()


def _explain(said: str) -> str:
    """What failed and what to do, from what `bwrap` or the process inside said."""
    advice = without_namespaces(said)
    if advice is None:
        advice = "run `bwrap --unshare-all --ro-bind / / true` by hand to see whether it works on this machine"
    return f"no sandbox could be started: {said}; {advice}"
