"""Sandboxes by Apptainer: the system inside is an image, a SIF or an unpacked root, mounted read-only.

Outermost is a PID namespace whose first process dies with the worker's thread (the parent-death signal is the
thread's), so that Apptainer and the programs that mount for it, `squashfuse` and `fuse-overlayfs`, die with it too,
whatever state they are in; the mounts are in a namespace of their own and go with its last process. In it Apptainer
mounts the image, and `bwrap` makes of that what the other kind of sandbox is: own namespaces of every kind, no network,
no capabilities, one writable folder, the work tree, which is an overlay of the image's own and the given files.
"""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from stepwell.sandbox.apptainer_image import ImageInside
from stepwell.sandbox.apptainer_outside import ApptainerOutside, bind, explain
from stepwell.sandbox.bwrap_program import ISOLATION
from stepwell.sandbox.framed_sandbox import FramedSandbox
from stepwell.sandbox.lower_trees import digests_of_files, key_of_files
from stepwell.sandbox.prepared import PreparedOnce
from stepwell.sandbox.protocol import WORK, SandboxError, SandboxLimits
from stepwell.sandbox.starter import Start, Starter, guest_arguments
from stepwell.sandbox.system import SHARED_MEMORY_BYTES, TMP_BYTES

BASES_KEPT = 16
"""Listings of fresh trees that are kept, some MB each for a large repository."""
WRITTEN = "/dev/written"
"""Where the overlay's upper layer can be read inside, by the watch: it holds what was written, and that alone."""

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

    def __init__(self, folder: Path, outside: ApptainerOutside) -> None:
        self.starter = Starter(folder)
        self._folder = folder
        self._outside = outside
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
        return await self.starter.create(
            files, limits, Start(command, self._outside.environment(), False, base, explain)
        )

    async def _look_into(self, place: _Place) -> _Image:
        async with self._looking[place]:
            if place not in self._images:
                self._images[place] = await asyncio.to_thread(self._probe, place, len(self._images))
            return self._images[place]

    def _probe(self, place: _Place, number: int) -> _Image:
        inside = self._outside.look_into(place.image, place.work, place.hidden)
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
        command = [*self._outside.command(), *bind(over, _OVER), *bind(tree, f"{_OVER}/tree", "ro")]
        for name in ("passwd", "group", "hosts"):
            command += bind(image.etc / name, f"/etc/{name}", "ro")
        if image.inside.work == "missing":
            command += bind(over / "tree", place.work, "ro")
        command += [str(place.image), *self._outside.bundle.bwrap, *ISOLATION, "--clearenv", "--ro-bind", "/", "/"]
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
        return [
            *command,
            *self._outside.bundle.guest,
            *guest_arguments(place.work, WRITTEN, limits, image.inside.environment),
        ]


def _prepare(folder: Path) -> _Prepared:
    """Lays out what goes into each image."""
    return _Prepared(folder, ApptainerOutside.prepare(folder))
