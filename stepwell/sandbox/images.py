"""SIF images: made from a root folder, a definition or a registry, looked into, found, and told apart by digest.

Through `spython`, which runs the program `singularity` of the path: a link that scripts/install-apptainer makes.
"""

import hashlib
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from spython.main import get_client
from spython.main.base import Client
from spython.main.build import build as build_by_client
from spython.main.inspect import inspect as inspect_by_client
from spython.main.pull import pull as pull_by_client

from stepwell.sandbox.folders import temporary_folder

INSTALL = "run scripts/install-apptainer"
_SOURCES = ("docker://", "oras://", "library://", "https://")


class ImageError(Exception):
    """An image could not be made, found or read, or is not the one wanted. Says what was found and what to do."""


@dataclass(frozen=True)
class ImageFacts:
    """What an image says of itself."""

    labels: Mapping[str, str]
    environment: str
    """Its `%environment` and what its builder added: shell text, by file."""
    definition: str
    """What it was built from, if it kept that."""


def find_apptainer() -> Path:
    """The program `apptainer`.

    Raises:
        ImageError: it is not installed.
    """
    found = shutil.which("apptainer")
    if found is None or shutil.which("singularity") is None:
        raise ImageError(f"no program `apptainer` or no link `singularity` to it on the path: {INSTALL}")
    return Path(found)


def build_from_root(root: Path, image: Path, options: Sequence[str] = ()) -> None:
    """Builds a SIF of an unpacked root.

    Args:
        root: Its files, with the modes that they are to have; `.singularity.d` is added if it has none.
        image: Where the SIF is written; replaced if it is there.
        options: Of `apptainer build`, for example `--mksquashfs-args=-noD`.

    Raises:
        ImageError: what the builder said.
    """
    if not root.is_dir():
        raise ImageError(f"no folder {root} to build an image of: give one with an unpacked root")
    _build(root, image, options)


def build_from_definition(definition: str, image: Path, options: Sequence[str] = ()) -> None:
    """Builds a SIF by the text of a definition file; raises as `build_from_root`."""
    with temporary_folder("stepwell-image-") as folder:
        file = folder / "image.def"
        file.write_text(definition)
        _build(file, image, options)


def pull(uri: str, image: Path, sha256: str | None = None) -> None:
    """Fetches an image, `docker://…`, `oras://…`, `library://…` or `https://…`, as a SIF.

    Args:
        uri: What is fetched. One of `docker://` is made into a SIF here, of which no two are equal: pin it by its
            manifest, `docker://HOST/NAME@sha256:…`, which is checked on the way with all that it lists.
        image: Where the SIF is written, once all of it is there and right; replaced if it is there.
        sha256: Of the SIF, for the sources that have it as a file; not checked if None.

    Raises:
        ImageError: it could not be fetched, or is not the one wanted.
    """
    find_apptainer()
    if not uri.startswith(_SOURCES):
        raise ImageError(f"{uri!r} names no registry: begin it with one of {', '.join(_SOURCES)}")
    with _written_aside(image) as aside:
        pull_by_client(_client(), image=uri, name=aside.name, pull_folder=str(aside.parent), quiet=True)
        if not aside.is_file():
            raise ImageError(f"{uri} could not be fetched: `apptainer pull {uri}` says why")
        if sha256 is not None:
            verify_digest(aside, sha256)


def inspect(image: Path) -> ImageFacts:
    """What an image says of itself.

    Raises:
        ImageError: there is no such image, or it is none.
    """
    find_apptainer()
    if not image.exists():
        raise ImageError(f"no image {image}")
    said = inspect_by_client(_client(), image=str(image), quiet=True)
    attributes = said.get("attributes") if isinstance(said, dict) else None
    if not isinstance(attributes, dict):
        raise ImageError(f"{image} is no image that Apptainer can read: {said}")
    environment = attributes.get("environment") or {}
    text = "\n".join(environment.values()) if isinstance(environment, dict) else str(environment)
    labels = {str(name): str(value) for name, value in (attributes.get("labels") or {}).items()}
    return ImageFacts(labels, text, str(attributes.get("deffile") or ""))


def digest_of(image: Path) -> str:
    """SHA-256 of a SIF, in hex.

    Raises:
        ImageError: there is no such file.
    """
    try:
        with image.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ImageError(f"no image file {image}: {error}") from error


def verify_digest(image: Path, wanted: str) -> None:
    """Refuses an image that is not the one wanted.

    Raises:
        ImageError: the digests differ, or there is no such file.
    """
    found = digest_of(image)
    if found != wanted.removeprefix("sha256:"):
        raise ImageError(f"{image} has the SHA-256 {found}, and {wanted} is wanted: fetch it again, or drop its tasks")


def find_image(folders: Sequence[Path], names: Sequence[str]) -> Path:
    """The first of `names`, with `.sif` or without, in the first folder that has one.

    Args:
        folders: Where images lie, the preferred first.
        names: What the image may be called, the preferred first.

    Raises:
        ImageError: none has it.
    """
    for name in names:
        for folder in folders:
            for candidate in (folder / f"{name}.sif", folder / name):
                if candidate.exists():
                    return candidate
    raise ImageError(
        f"no image {' or '.join(f'{name}.sif' for name in names)} in {', '.join(map(str, folders))}: "
        "put it there, or name the folder that has it"
    )


def _build(source: Path, image: Path, options: Sequence[str]) -> None:
    find_apptainer()
    with _written_aside(image) as aside:
        build_by_client(
            _client(),
            recipe=str(source),
            image=str(aside),
            sudo=False,
            quiet=True,
            return_result=True,
            options=[*options],
        )
        if not aside.is_file():
            raise ImageError(f"no image was built of {source}: `apptainer build {image} {source}` says why")


def _client() -> Client:
    return get_client(quiet=True)


@contextmanager
def _written_aside(image: Path) -> Generator[Path]:
    """A path beside `image`, which takes its place if all goes well: no half of an image is ever seen."""
    with TemporaryDirectory(prefix=".stepwell-", dir=image.parent) as folder:
        aside = Path(folder) / "image.sif"
        yield aside
        aside.replace(image)
