"""Where an issue says that the cause is: a file and some lines of it, for policies that are too small to search. Pure.

The lines are a window around the defect whose place follows from the task's id, so that the defect stands anywhere in
it.
"""

import hashlib
import re
from dataclasses import dataclass

from stepwell.sandbox.protocol import WORK
from stepwell.tasks.gold_change import gold_change
from stepwell.tasks.task import Task

_SENTENCE = "The cause is in {path}, lines {first} to {last}."
_READ = re.compile(r"The cause is in (\S+), lines (\d+) to (\d+)\.$")


@dataclass(frozen=True)
class Place:
    """Lines of a file."""

    path: str
    """Absolute, inside the sandbox."""
    first: int
    """First line, from 1."""
    last: int
    """Last line."""


def with_place(task: Task, lines: int) -> Task:
    """The task with the place of its defect at the end of the issue.

    Args:
        task: With its gold patch.
        lines: How many are named; more if the patch changes more, fewer if the file has fewer.

    Raises:
        ValueError: the gold patch is not one span of lines of one file.
    """
    change = gold_change(task)
    begin = min(change.first, len(change.wrong) - 1)  # a patch may only add lines, and at the end
    end = max(change.wrong_end, begin + 1)
    spare = max(0, lines - (end - begin))
    chance = int.from_bytes(hashlib.sha256(task.id.encode()).digest()[:8], "big")
    first = max(0, begin - chance % (spare + 1))
    last = min(len(change.wrong), max(first + lines, end))
    sentence = _SENTENCE.format(path=f"{WORK}/{change.path}", first=first + 1, last=last)
    return task.model_copy(update={"issue": f"{task.issue}\n\n{sentence}"})


def place_in(issue: str) -> Place:
    """The place that an issue names.

    Raises:
        ValueError: it names none.
    """
    found = _READ.search(issue)
    if found is None:
        raise ValueError(f"the issue names no lines of a file: {issue[-200:]!r}")
    return Place(found[1], int(found[2]), int(found[3]))
