"""An imported set on disk: what agents may see, and apart from it, for its owner alone, what only graders see.

SET/train/set.json       where it came from, its images with their digests, its tasks in order
SET/train/tasks.jsonl    the tasks, without a test, an expected status or a line of the gold patch
SET/train/secrets/       one file a task, named by its SHA-256; folder 0700, files 0600
SET/validation/…         the same
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from stepwell.events.canonical import digest_of_json
from stepwell.tasks.manifest import task_blob
from stepwell.tasks.r2e.images import ImageFile, check_images
from stepwell.tasks.r2e.secrets import R2ESplit
from stepwell.tasks.task import Task

SET_FILE, TASKS_FILE, SECRETS_FOLDER = "set.json", "tasks.jsonl", "secrets"
Order = Literal["files", "ids", "curriculum"]
"""Of the tasks: as the rows stand in the files, as the ids are listed, or by the fixed curriculum's rule."""


class BrokenSet(ValueError):
    """A folder that is no imported set, or not as it was written."""


class SourceFile(BaseModel):
    """A file that a set was made from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    """Its name."""
    sha256: str
    rows: int


class R2EManifest(BaseModel):
    """What `set.json` holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    split: R2ESplit
    sources: tuple[SourceFile, ...]
    order: Order
    images_folder: str
    """Where the images were when the set was imported."""
    images: dict[str, ImageFile]
    """By task."""
    tasks_sha256: str
    """Of `tasks.jsonl`."""
    digest: str
    """Over the stored form of every task, in order: sets with the same digest are the same tasks."""


@dataclass(frozen=True)
class R2ETaskSet:
    """A set that was read."""

    folder: Path
    """Of the split."""
    manifest: R2EManifest
    tasks: tuple[Task, ...]
    """In order."""

    def secrets_files(self, tasks: Sequence[Task]) -> tuple[Path, ...]:
        """The files with the secrets of some tasks, each named by its SHA-256."""
        names = dict.fromkeys(task.secrets for task in tasks if task.secrets is not None)
        return tuple(self.folder / SECRETS_FOLDER / name for name in names)

    def check_images(self, folder: Path | None = None, *, hash_all: bool = False) -> None:
        """Whether all images are there and as recorded, in the folder given or the recorded one.

        Raises:
            ImagesUnfit: all that are not.
        """
        images = list(self.manifest.images.values())
        check_images(folder or Path(self.manifest.images_folder), images, hash_all=hash_all)


def recorded_images_folder(folder: Path, split: R2ESplit) -> Path:
    """Where the images of a split were when its set was imported.

    Raises:
        BrokenSet: there is no such set, or it is not as it was written.
    """
    return Path(_manifest(folder, split).images_folder)


def digest_of_tasks(tasks: Sequence[Task]) -> str:
    """Digest of a set: over the stored form of every task, in order."""
    return digest_of_json([hashlib.sha256(task_blob(task)).hexdigest() for task in tasks])


def load_r2e(folder: Path, split: R2ESplit) -> R2ETaskSet:
    """Reads a split of an imported set; its images are not looked at.

    Raises:
        BrokenSet: there is none, or it is not as it was written.
    """
    place, manifest = folder / split, _manifest(folder, split)
    try:
        data = (place / TASKS_FILE).read_bytes()
    except OSError as error:
        raise BrokenSet(f"{place / TASKS_FILE} cannot be read ({error.strerror}): import the set anew") from error
    if hashlib.sha256(data).hexdigest() != manifest.tasks_sha256:
        raise BrokenSet(f"{place / TASKS_FILE} is not as it was written: import the set anew")
    tasks = tuple(Task.model_validate_json(line) for line in data.splitlines())
    found = R2ETaskSet(place, manifest, tasks)
    missing = [path.name for path in found.secrets_files(tasks) if not path.is_file()]
    if missing:
        raise BrokenSet(f"{len(missing)} files are missing in {place / SECRETS_FOLDER}: {', '.join(missing[:5])}")
    return found


def _manifest(folder: Path, split: R2ESplit) -> R2EManifest:
    file = folder / split / SET_FILE
    try:
        return R2EManifest.model_validate_json(file.read_bytes())
    except OSError as error:
        known = ", ".join(sorted(path.parent.name for path in folder.glob(f"*/{SET_FILE}"))) or "no split"
        raise BrokenSet(
            f"no set of R2E-Gym tasks for the split {split!r} in {folder} ({error.strerror}): it holds {known}; "
            "`stepwell tasks import-r2e --out` makes one"
        ) from error
    except ValidationError as error:
        raise BrokenSet(f"{file} is not as import-r2e writes it: {error.errors()[0]['msg']}") from error


def lines_of(tasks: Sequence[Task]) -> Iterator[bytes]:
    """The lines of `tasks.jsonl`."""
    for task in tasks:
        yield task_blob(task) + b"\n"
