"""A work tree in memory, for demonstrations on sources that our own templates wrote.

It runs nothing but the visible tests, in this process; observations equal those of a real sandbox, which a test holds.
"""

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from stepwell.agent.compact import visible_test_argv
from stepwell.events.canonical import digest_of_json
from stepwell.sandbox.protocol import ExecEnd, ExecResult, SandboxError
from stepwell.tasks.forge.trusted import TrustedTree
from stepwell.tasks.task import Task

_Result = TypeVar("_Result")


class TrustedSandbox:
    """`Sandbox` around a forged task's tree."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.files: dict[str, str] = dict(task.files)
        self._before: dict[str, str] = dict(task.files)

    async def exec(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"") -> ExecResult:
        """Runs the visible tests.

        Raises:
            SandboxError: any other command.
        """
        if list(argv) != visible_test_argv(self._task):
            raise SandboxError(f"the sandbox of demonstrations runs the visible tests only, not {list(argv)}")
        tree = TrustedTree(self.files)
        failures = [error for path in argv[4:] for error in tree.failures(path).values() if error is not None]
        output = f"failed: {failures[0].splitlines()[0][:100]}\n" if failures else "passed\n"
        return ExecResult(ExecEnd.EXITED, 0, output.encode(), 0.0)

    async def read_file(self, path: str) -> bytes:
        """Content of a file.

        Raises:
            FileNotFoundError: no such file.
        """
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path].encode()

    async def write_file(self, path: str, data: bytes) -> None:
        """Writes a file."""
        self.files[path] = data.decode()

    async def tree_digest(self) -> str:
        """Digest of the files; not comparable with that of a real sandbox."""
        return digest_of_json(self.files)

    async def settle(self) -> None:
        """Takes the files as they are for the task's."""
        self._before = dict(self.files)

    async def changed_files(self) -> dict[str, bytes | None]:
        """What differs from the task's files."""
        return {path: text.encode() for path, text in self.files.items() if self._before.get(path) != text}

    async def destroy(self) -> None:
        """Nothing is held."""


def completed(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Result of a coroutine that never waits, without an event loop.

    Raises:
        RuntimeError: it waited for something.
    """
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value
    work.close()
    raise RuntimeError("a tool of a demonstration waited for something outside this process")
