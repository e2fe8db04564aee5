"""The tree that is graded: the task's files, the agent's changes, what is guarded put back, the hidden tests on top."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from stepwell.tasks.task import Task

GUARDED_NAMES = frozenset(
    {
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        "pyvenv.cfg",
        "sitecustomize.py",
        "usercustomize.py",
    }
)
"""Test configuration and start-up files of the interpreter: put back for every task, wherever they lie."""
GUARDED_SUFFIXES = (".pth", ".pyc", ".so")
"""What an interpreter reads in place of, or before, the source that a reviewer sees."""


def is_guarded(path: str, protected: tuple[str, ...]) -> bool:
    """Whether an agent's change of this path is undone: for its name, or as it is or lies under a protected path."""
    pure = PurePosixPath(path)
    if pure.name in GUARDED_NAMES or pure.suffix in GUARDED_SUFFIXES:
        return True
    return any(pure.is_relative_to(guarded) for guarded in protected)


def graded_tree(task: Task, changed: Mapping[str, bytes | None], hidden: Mapping[str, str]) -> dict[str, bytes]:
    """Path to content of what is graded.

    Args:
        task: The task as the agent got it.
        changed: What the agent changed: path to content, None for what it removed.
        hidden: The test files that are put in last, which may be more than the task's own.
    """
    tree = {path: text.encode() for path, text in task.files.items()}
    for path, content in sorted(changed.items()):
        if is_guarded(path, task.protected):
            continue
        if content is None:
            tree.pop(path, None)
        else:
            _place(tree, path, content)
    for path, text in task.files.items():
        if is_guarded(path, task.protected):
            _place(tree, path, text.encode())
    for path, text in hidden.items():
        _place(tree, path, text.encode())
    return tree


def put_back(task: Task, changed: Mapping[str, bytes | None]) -> list[str]:
    """Paths whose change is undone before grading, in order: guarded ones, and hidden tests."""
    under = (*task.protected, *task.hidden)
    return sorted(path for path in changed if is_guarded(path, under) and _differs(task, path, changed[path]))


def _differs(task: Task, path: str, content: bytes | None) -> bool:
    return (task.files[path].encode() if path in task.files else None) != content


def _place(tree: dict[str, bytes], path: str, content: bytes) -> None:
    """Puts a file in, and removes what would stand in its way: a file where it needs a folder, or the reverse."""
    pure = PurePosixPath(path)
    for parent in pure.parents:
        tree.pop(str(parent), None)
    for other in [other for other in tree if other.startswith(path + "/")]:
        del tree[other]
    tree[path] = content
