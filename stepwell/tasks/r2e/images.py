"""Where the image of a task is, and whether it is still the one that was recorded."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from stepwell.tasks.r2e.rows import repository_of

SUBFOLDERS = ("r2egym", "")
"""Of the image folder, in the order of search."""
AT_ONCE = 4
"""Images that are hashed at the same time."""
NAMED = 20
"""Most images that a message names."""


class ImagesUnfit(ValueError):
    """Images are missing, or not those that were recorded."""


class ImageFile(BaseModel):
    """An image as it was found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    """Path in the image folder."""
    sha256: str
    size_bytes: int
    mtime_ns: int
    """Time of its last change when it was hashed: with the same size and time it is not hashed again."""


def image_names(instance_id: str) -> tuple[str, str]:
    """File names that a task's image may have, the first that is there counts.

    Raises:
        ValueError: it is no instance id.
    """
    repository, commit = repository_of(instance_id)
    return f"{repository.lower()}_final_{commit}.sif", f"{instance_id}.sif"


def find_images(folder: Path, instance_ids: Iterable[str]) -> dict[str, Path | None]:
    """The image of each task, None where there is none by either name, in the folder or its `r2egym`."""
    return {
        instance: next(
            (
                path
                for name in image_names(instance)
                for inner in SUBFOLDERS
                if (path := folder / inner / name).is_file()
            ),
            None,
        )
        for instance in instance_ids
    }


def record_images(folder: Path, images: Mapping[str, Path]) -> dict[str, ImageFile]:
    """Hashes images, each once; what they are by task.

    Raises:
        ImagesUnfit: some cannot be read.
    """
    return dict(zip(images, _hashed(folder, list(images.values())), strict=True))


def check_images(folder: Path, recorded: Sequence[ImageFile], *, hash_all: bool = False) -> None:
    """Whether the images are those that were recorded.

    Args:
        folder: The image folder, which may be another than when they were recorded.
        recorded: What they must be.
        hash_all: Hash also those whose size and time are as recorded.

    Raises:
        ImagesUnfit: all that are missing or changed, named at once.
    """
    missing: list[str] = []
    changed: list[str] = []
    doubtful: list[ImageFile] = []
    for image in recorded:
        path = folder / image.file
        if not path.is_file():
            missing.append(image.file)
            continue
        status = path.stat()
        if status.st_size != image.size_bytes:
            changed.append(f"{image.file} ({status.st_size} bytes, recorded are {image.size_bytes})")
        elif hash_all or status.st_mtime_ns != image.mtime_ns:
            doubtful.append(image)
    for image, found in zip(doubtful, _hashed(folder, [folder / one.file for one in doubtful]), strict=True):
        if found.sha256 != image.sha256:
            changed.append(f"{image.file} (SHA-256 {found.sha256}, recorded is {image.sha256})")
    if missing or changed:
        parts = [f"{len(missing)} missing: {named(missing)}"] if missing else []
        parts += [f"{len(changed)} changed: {named(changed)}"] if changed else []
        raise ImagesUnfit(
            f"of {len(recorded)} images in {folder} {'; '.join(parts)}; put back what was recorded, or import the set "
            "anew"
        )


def named(names: Sequence[str]) -> str:
    """A list for people, cut where it gets long."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _hashed(folder: Path, paths: Sequence[Path]) -> list[ImageFile]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(partial(_hash, folder), paths))


def _hash(folder: Path, path: Path) -> ImageFile:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        status = path.stat()
    except OSError as error:
        raise ImagesUnfit(f"cannot read the image {path}: {error.strerror}") from error
    return ImageFile(
        file=str(path.relative_to(folder)), sha256=digest, size_bytes=status.st_size, mtime_ns=status.st_mtime_ns
    )
