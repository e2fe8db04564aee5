"""What a task's gold patch changes, as one span of lines. Pure."""

from dataclasses import dataclass

from stepwell.tasks.task import Task


@dataclass(frozen=True)
class GoldChange:
    """One file, and the lines that become others; lines are what `split("\\n")` gives, from 0."""

    path: str
    wrong: tuple[str, ...]
    """The file's lines with the defect."""
    right: tuple[str, ...]
    """Its lines without it."""
    first: int
    """First line that differs."""
    wrong_end: int
    """Line of `wrong` after the last that differs."""
    right_end: int
    """The same of `right`."""


def gold_change(task: Task) -> GoldChange:
    """The smallest span of lines that holds all that the gold patch changes.

    Raises:
        ValueError: the patch changes no file or several, makes one, or leaves it as it is.
    """
    changed = [path for path, text in task.gold.items() if task.files.get(path) != text]
    if len(changed) != 1 or changed[0] not in task.files:
        raise ValueError(f"the gold patch of {task.id} changes the files {changed}: one is wanted that is there before")
    wrong, right = tuple(task.files[changed[0]].split("\n")), tuple(task.gold[changed[0]].split("\n"))
    first = _alike(wrong, right)
    last = min(_alike(wrong[::-1], right[::-1]), len(wrong) - first, len(right) - first)
    return GoldChange(changed[0], wrong, right, first, len(wrong) - last, len(right) - last)


def _alike(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Lines at the beginning that are the same in both."""
    for index, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return index
    return min(len(one), len(other))
