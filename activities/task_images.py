"""Images of tasks on this machine: where they are, and that they are those that the tasks were made with."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from stepwell.recipe.recipe import Recipe
from stepwell.recipe.sections import R2ETasks
from stepwell.sandbox.images import ImageError, verify_digest
from stepwell.tasks.r2e.task_set import recorded_images_folder
from stepwell.tasks.task import Task, TaskImage


@dataclass(frozen=True)
class _Version:
    """A file, as long as nobody writes to it."""

    inode: int
    size_bytes: int
    mtime_ns: int


class TaskImages:
    """Finds images; each is hashed when a process first asks for it, and again once its size or time is another."""

    def __init__(self) -> None:
        self._verified: dict[tuple[Path, str], _Version] = {}
        self._verifying: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def find(self, recipe: Recipe, task: Task) -> Path:
        """Path of a task's image.

        Raises:
            BrokenSet: the recipe names no folder of images, and the set that it names is not on this machine.
            ImageError: the image is not there, or is another one; or the task has none that the recipe could name.
        """
        if task.image is None or not isinstance(recipe.tasks, R2ETasks):
            raise ImageError(f"the recipe {recipe.name} says nowhere where the image of {task.id} would be")
        image = _folder(recipe.tasks, task) / task.image.file
        async with self._verifying[image]:
            await asyncio.to_thread(self._verify, image, task.image)
        return image

    def _verify(self, image: Path, wanted: TaskImage) -> None:
        try:
            status = image.stat()
        except OSError as error:
            raise ImageError(
                f"no image {image} ({error.strerror}): put it there, or name the folder that has it by tasks.images"
            ) from error
        version = _Version(status.st_ino, status.st_size, status.st_mtime_ns)
        if self._verified.get((image, wanted.sha256)) != version:
            verify_digest(image, wanted.sha256)
            self._verified[image, wanted.sha256] = version


def _folder(tasks: R2ETasks, task: Task) -> Path:
    if tasks.images is not None:
        return Path(tasks.images).expanduser()
    return recorded_images_folder(Path(tasks.path).expanduser(), "train" if task.split == "train" else "validation")
