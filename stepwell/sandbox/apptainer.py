"""Sandboxes by Apptainer: the system inside is an image, a SIF or an unpacked root, mounted read-only.

Outermost is a PID namespace whose first process dies with the worker's thread (the parent-death signal is the
thread's), so that Apptainer and the programs that mount for it, `squashfuse` and `fuse-overlayfs`, die with it too,
whatever state they are in; the mounts are in a namespace of their own and go with its last process. In it Apptainer
mounts the image, and `bwrap` makes of that what the other kind of sandbox is: own namespaces of every kind, no network,
no capabilities, one writable folder, the work tree, which is an overlay of the image's own and the given files.
"""

import asyncio
import os
import shutil
import subprocess
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from stepwell.sandbox.apptainer_image import PROBE, ImageInside, parse_probe
from stepwell.sandbox.bwrap_program import ISOLATION, find_bwrap, without_namespaces
from stepwell.sandbox.framed_sandbox import FramedSandbox
from stepwell.sandbox.guest_bundle import MOUNTED_AT, GuestBundle, write_guest_bundle
from stepwell.sandbox.images import INSTALL, ImageError, find_apptainer
from stepwell.sandbox.lower_trees import digests_of_files, key_of_files
from stepwell.sandbox.prepared import PreparedOnce
from stepwell.sandbox.protocol import WORK, SandboxError, SandboxLimits
from stepwell.sandbox.starter import Start, Starter, guest_arguments
from stepwell.sandbox.system import SHARED_MEMORY_BYTES, TMP_BYTES

PROBE_TIMEOUT_S = 300.0
BASES_KEPT = 16
"""Listings of fresh trees that are kept, some MB each for a large repository."""
WRITTEN = "/dev/written"
"""Where the overlay's upper layer can be read inside, by the watch: it holds what was written, and that alone."""

_CONFIGURATION = """\
# Nothing of the host's is mounted or written into: what there is comes from the image, `bwrap` or the command line.
config passwd = no
config group = no
config resolv_conf = no
mount proc = yes
mount sys = no
mount dev = yes
mount home = no
mount tmp = no
mount hostfs = no
user bind control = yes
enable overlay = yes
enable underlay = yes
mount slave = no
"""
_OVER = "/tmp"
"""Where Apptainer mounts a sandbox's own folder; the temporary file system of the sandbox hides it."""


@dataclass(frozen=True)
class _Place:
    """A work folder in an image."""

    image: Path
    work: str
    hidden: tuple[str, ...]
    """Paths of the image that its sandboxes do not show."""


@dataclass(frozen=True)
class _Image:
    """An image that was looked into."""

    inside: ImageInside
    etc: Path
    """Folder of the files that take the place of the image's own."""


class ApptainerFactory:
    """Makes Apptainer sandboxes; a `SandboxFactory`.

    Args:
        root: Folder for the private folders of this and other live factories; made if missing. On a disk that can
            carry an overlay's upper layer (not itself an overlay).
        image: What sandboxes have whose creator names none.
    """

    def __init__(self, root: Path, image: str | None = None) -> None:
        self._image = image
        self._shared = PreparedOnce(root, partial(asyncio.to_thread, _prepare))

    async def create(
        self,
        files: Mapping[str, bytes],
        limits: SandboxLimits,
        image: str | None = None,
        *,
        work: str = WORK,
        hidden: Sequence[str] = (),
    ) -> FramedSandbox:
        """A sandbox in an image, `files` laid over what it has at `work`, ready for its first command.

        Raises:
            SandboxError: it could not be made: what failed and what to do about it.
            ValueError: a path of `files` leads out of the tree, or is a file and a folder; or there is no image; or a
                hidden path is not absolute, or holds the work tree.
        """
        chosen = image or self._image
        if chosen is None:
            raise ValueError("a sandbox of Apptainer needs an image: name a SIF, or give the factory one")
        for path in hidden:
            if not path.startswith("/") or PurePosixPath(work).is_relative_to(path):
                raise ValueError(f"{path!r} cannot be hidden: give an absolute path that does not hold {work}")
        prepared = await self._shared.get()
        return await prepared.create(files, limits, _Place(Path(chosen).resolve(), work, tuple(hidden)))

    async def close(self) -> None:
        """Destroys every sandbox that this factory still holds, and removes its folder. Idempotent."""
        await self._shared.close()


class _Prepared:
    """What all sandboxes of a factory share."""

    def __init__(self, apptainer: Path, folder: Path, bundle: GuestBundle) -> None:
        self.starter = Starter(folder)
        self._apptainer = apptainer
        self._folder = folder
        self._bundle = bundle
        self._images: dict[_Place, _Image] = {}
        self._looking: defaultdict[_Place, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._bases: OrderedDict[tuple[_Place, str], Mapping[bytes, bytes]] = OrderedDict()

    async def create(self, files: Mapping[str, bytes], limits: SandboxLimits, place: _Place) -> FramedSandbox:
        """Starts a sandbox; raises as `ApptainerFactory.create`."""
        image = await self._look_into(place)

        async def base() -> Mapping[bytes, bytes]:
            if image.inside.work != "full":
                return digests_of_files(files)
            return await self._fresh_tree(files, limits, place)

        command = partial(self._command, image=image, place=place, limits=limits)
        return await self.starter.create(files, limits, Start(command, self._environment(), False, base, _explain))

    async def _look_into(self, place: _Place) -> _Image:
        async with self._looking[place]:
            if place not in self._images:
                self._images[place] = await asyncio.to_thread(self._probe, place, len(self._images))
            return self._images[place]

    def _probe(self, place: _Place, number: int) -> _Image:
        if not place.image.exists():
            raise SandboxError(f"no image {place.image}: fetch or build it, or correct its path")
        command = [*self._outside(), str(place.image), *self._bundle.python, "-c", PROBE, place.work, *place.hidden]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=self._environment(),
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode != 0:
            raise SandboxError(_explain(said or f"the image {place.image} ended with status {done.returncode}"))
        try:
            inside = parse_probe(done.stdout, hidden=len(place.hidden))
        except ValueError as error:
            raise SandboxError(_explain(f"{error}; {said}")) from error
        holding = [path for path in inside.hidden if PurePosixPath(place.work).is_relative_to(path)]
        if holding:
            raise SandboxError(f"{holding[0]} in {place.image} is to be hidden, and holds the work tree {place.work}")
        etc = self._folder / f"etc-{number}"
        inside.write_etc(etc)
        return _Image(inside, etc)

    async def _fresh_tree(
        self, files: Mapping[str, bytes], limits: SandboxLimits, place: _Place
    ) -> Mapping[bytes, bytes]:
        """What the work tree was: asked of a fresh sandbox, once for all that began the same."""
        key = (place, key_of_files(files))
        if key not in self._bases:
            fresh = await self.create(files, limits, place)
            try:
                self._bases[key] = await fresh.content_digests()
            finally:
                await fresh.destroy()
        self._bases.move_to_end(key)
        if len(self._bases) > BASES_KEPT:
            self._bases.popitem(last=False)
        return self._bases[key]

    def _command(self, folder: Path, tree: Path, *, image: _Image, place: _Place, limits: SandboxLimits) -> list[str]:
        over = folder / "over"
        for name in ("upper", "scratch", "tree"):
            (over / name).mkdir(parents=True)
        (over / "empty").touch()
        command = [*self._outside(), *_bind(over, _OVER), *_bind(tree, f"{_OVER}/tree", "ro")]
        for name in ("passwd", "group", "hosts"):
            command += _bind(image.etc / name, f"/etc/{name}", "ro")
        if image.inside.work == "missing":
            command += _bind(over / "tree", place.work, "ro")
        command += [str(place.image), *self._bundle.bwrap, *ISOLATION, "--clearenv", "--ro-bind", "/", "/"]
        command += ["--proc", "/proc", "--dev", "/dev", "--size", str(TMP_BYTES), "--tmpfs", "/tmp"]
        command += ["--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]
        command += ["--overlay-src", place.work, "--overlay-src", f"{_OVER}/tree"]
        command += ["--overlay", f"{_OVER}/upper", f"{_OVER}/scratch", place.work]
        for path, kind in image.inside.hidden.items():  # after the work tree: some may lie in it
            if kind == "folder":
                command += ["--tmpfs", path, "--remount-ro", path]
            else:
                command += ["--ro-bind", f"{_OVER}/empty", path]
        command += ["--ro-bind", f"{_OVER}/upper", WRITTEN, "--remount-ro", "/dev", "--remount-ro", "/"]
        return [*command, *self._bundle.guest, *guest_arguments(place.work, WRITTEN, limits, image.inside.environment)]

    def _outside(self) -> list[str]:
        """All up to the image's path, or further options of `apptainer exec`."""
        command = ["setpriv", "--pdeathsig", "KILL", "--", "unshare"]
        if os.geteuid() != 0:  # as root of a namespace he has what root has in the image, and can change it in the tree
            command += ["--user", "--map-root-user"]
        command += ["--pid", "--mount", "--mount-proc", "--fork", "--kill-child", "--"]
        command += [str(self._apptainer), "--quiet", "--config", str(self._folder / "apptainer.conf")]
        command += ["exec", "--userns", "--cleanenv", "--cwd", "/", "--no-mount", "home,tmp,cwd,bind-paths"]
        return [*command, *_bind(self._bundle.folder, MOUNTED_AT, "ro")]

    def _environment(self) -> dict[str, str]:
        """Of Apptainer: it keeps what it caches in the factory's folder, and its programs are found on the path."""
        own = str(self._folder / "apptainer")
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": own, "TMPDIR": own, "APPTAINER_CONFIGDIR": own}


def _bind(source: Path, target: str, *options: str) -> list[str]:
    return ["--bind", ":".join((str(source), target, *options))]


def _prepare(folder: Path) -> _Prepared:
    """Lays out what goes into each image."""
    try:
        apptainer = find_apptainer()
    except ImageError as error:
        raise SandboxError(str(error)) from error
    missing = [program for program in ("squashfuse_ll", "setpriv", "unshare") if shutil.which(program) is None]
    if missing:
        raise SandboxError(f"no {' and no '.join(missing)} on the path: {INSTALL}")
    (folder / "apptainer").mkdir()
    (folder / "apptainer.conf").write_text(_CONFIGURATION)
    return _Prepared(apptainer, folder, write_guest_bundle(folder / "bundle", find_bwrap()))


def _explain(said: str) -> str:
    """What failed and what to do, from what was said instead of a greeting."""
    lowered = said.lower()
    advice = without_namespaces(said)
    if advice is None and "overlay" in lowered:
        advice = (
            "give a root on a disk that can carry an overlay's upper layer, such as ext4 or xfs, not itself an overlay"
        )
    elif advice is None and "fuse" in lowered:
        advice = "let this user open /dev/fuse, and see that squashfuse is installed"
    elif advice is None:
        advice = "run `apptainer exec --userns IMAGE true` by hand to see whether the image works on this machine"
    return f"no sandbox could be started: {said}; {advice}"
