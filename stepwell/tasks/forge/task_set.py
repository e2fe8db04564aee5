"""A forged task set: four splits that share neither sources nor names."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as count_up

from pydantic import BaseModel, ConfigDict, Field

from stepwell.events.canonical import digest_of_json
from stepwell.tasks.forge.generator import forged_task
from stepwell.tasks.task import Split, Task


class ForgeCounts(BaseModel):
    """How many tasks each split has."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    train: int = Field(default=2560, ge=1)
    """Training tasks, in order from easy to hard."""
    validation: int = Field(default=256, ge=0)
    """Held-out tasks of the training families: stopping looks at these."""
    confirm: int = Field(default=256, ge=0)
    """More held-out tasks of the training families, looked at once."""
    heldout_family: int = Field(default=256, ge=0)
    """Tasks of families that training has not."""


@dataclass(frozen=True)
class TaskSet:
    """Tasks by split."""

    train: tuple[Task, ...]
    """In curriculum order: difficulty never decreases; families are mixed within a difficulty."""
    validation: tuple[Task, ...]
    confirm: tuple[Task, ...]
    heldout_family: tuple[Task, ...]

    def curriculum(self, count: int) -> tuple[Task, ...]:
        """`count` training tasks spread evenly over the whole order, still from easy to hard.

        Raises:
            ValueError: more were asked for than there are.
        """
        if not 0 < count <= len(self.train):
            raise ValueError(f"{count} training tasks were asked for, the set has {len(self.train)}; forge more")
        return tuple(self.train[place * len(self.train) // count] for place in range(count))

    def every(self) -> Iterator[Task]:
        """All tasks, split by split."""
        yield from (*self.train, *self.validation, *self.confirm, *self.heldout_family)

    @property
    def digest(self) -> str:
        """SHA-256 over the digests of all tasks, in order."""
        return digest_of_json([task.digest for task in self.every()])


def forge(seed: int, counts: ForgeCounts) -> TaskSet:
    """Forges a task set; the same seed and counts give the same set. About 1.5 ms a task.

    A larger count of a split keeps the tasks of a smaller one.
    """
    train = sorted(_distinct(seed, "train", counts.train), key=lambda task: (task.difficulty, task.digest))
    return TaskSet(
        train=tuple(train),
        validation=tuple(_distinct(seed, "validation", counts.validation)),
        confirm=tuple(_distinct(seed, "confirm", counts.confirm)),
        heldout_family=tuple(_distinct(seed, "heldout_family", counts.heldout_family)),
    )


def _distinct(seed: int, split: Split, count: int) -> list[Task]:
    tasks: list[Task] = []
    seen: set[str] = set()
    for index in count_up():
        if len(tasks) == count:
            break
        task = forged_task(seed, split, index)
        content = digest_of_json({"files": task.files, "hidden": task.hidden})
        if content not in seen:
            seen.add(content)
            tasks.append(task)
    return tasks
