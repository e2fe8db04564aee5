"""The one substitution that repairs a forged task, read off its reference solution."""

import re
from dataclasses import dataclass

from stepwell.agent.compact import find_token, lexemes, modules, numbered
from stepwell.tasks.task import Task


@dataclass(frozen=True)
class Substitution:
    """Arguments of the action `sub`."""

    line: int
    old: str
    new: str
    which: int | None
    """Place among several occurrences of `old`, from 1; None if there is but one."""

    @property
    def action(self) -> str:
        """The action's text."""
        which = "" if self.which is None else f" {self.which}"
        return f"sub L{self.line} {self.old} {self.new}{which}"


def repair_of(task: Task) -> Substitution:
    """The substitution that turns the task's files into its reference solution.

    Raises:
        ValueError: the solution is not one substitution of adjacent tokens within one line.
    """
    files = {path: task.files[path] for path in modules(task)}
    pairs = zip(numbered(files), numbered({**files, **task.gold}), strict=True)
    changed = [(old, new) for old, new in pairs if old.text != new.text]
    if len(changed) != 1:
        raise ValueError(f"{task.id}: the solution changes {len(changed)} lines, one is wanted")
    ((line, solution),) = changed
    was, becomes = lexemes(line.text), lexemes(solution.text)
    start = _common_prefix(was, becomes)
    end = _common_prefix(was[start:][::-1], becomes[start:][::-1])
    old, new = was[start : len(was) - end], becomes[start : len(becomes) - end]
    if not old or not new:
        # A pure insertion or deletion: take the token after it along.
        old, new = was[start : len(was) - end + 1], becomes[start : len(becomes) - end + 1]
    spans = find_token(line.text, "".join(old))
    earlier = sum(was[at : at + len(old)] == old for at in range(start))
    return Substitution(line.number, "".join(old), "".join(new), earlier + 1 if len(spans) > 1 else None)


def defect_name(task: Task) -> str:
    """The function that a forged task's issue is about.

    Raises:
        ValueError: the issue shows no call.
    """
    match = re.search(r"([A-Za-z_]\w*)\(", task.issue)
    if match is None:
        raise ValueError(f"{task.id}: the issue shows no call of a function: {task.issue!r}")
    return match[1]


def _common_prefix(one: list[str], other: list[str]) -> int:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length
