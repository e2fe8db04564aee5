"""Runs named tests of a tree in a fresh sandbox, and reads what the runner says of each."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from stepwell.sandbox.protocol import ExecEnd, Sandbox, SandboxError, SandboxFactory, SandboxLimits
from stepwell.tasks.grading.answer import Reported, read_answer

OUTPUT_BYTES = 4 << 20
"""Room for some 10,000 tests, each of which fails with a message."""
GRACE_S = 60.0
"""Life of the sandbox beyond the wall clock of the tests."""
LOOK_TIMEOUT_S = 30.0

_NO_BYTECODE = ("-B", "-X", "pycache_prefix=/nonexistent")
"""Tested code must not leave bytecode where the next test file is looked for."""
_LOOK = """
import os, sys
for path in sys.argv[1:]:
    try:
        status = os.lstat(path)
        print(f"{status.st_ino}:{status.st_ctime_ns}")
    except OSError:
        print("gone")
"""


class DiedUnderTests(SandboxError):
    """The sandbox was made, and then died with tested code inside: its own doing, or the host's."""


@dataclass(frozen=True)
class TestRun:
    """One run of a runner that did start."""

    __test__ = False  # Its name looks like a test class to pytest.

    end: ExecEnd
    returncode: int
    ended: bool
    """The runner came to its own end."""
    tests: dict[str, Reported]
    """By id; those that were not reported are missing."""
    altered: tuple[str, ...]
    """Watched files that were changed while the tests ran, even if they were put back."""
    misconduct: str | None = None
    """What was on the channel that no runner writes there, in words."""
    killed: str | None = None
    """Why the sandbox ended the run, if it did so before its deadline."""
    deadline_s: float = 0.0
    """Wall clock that it had."""
    duration_s: float = 0.0
    """Wall clock that it took, measured."""


async def run_tests(
    tree: Mapping[str, bytes],
    tests: Sequence[str],
    grader: Literal["calls", "pytest"],
    factory: SandboxFactory,
    *,
    timeout_s: float,
    watched: Sequence[str] = (),
) -> TestRun:
    """Runs the tests in a sandbox of their own.

    Args:
        tree: Path to content of all files, tests included.
        tests: Ids, in the order in which `calls` runs those of one file.
        grader: The runner.
        factory: Makes the sandbox; for `pytest`, one with pytest in its site-packages.
        timeout_s: Wall clock of the run.
        watched: Paths of `tree` that the tests must leave as they are.

    Raises:
        SandboxError: the sandbox could not be made, or the runner did not start in it, which no tested code can bring
            about; `DiedUnderTests` where it could.
    """
    nonce = secrets.token_hex(16)
    limits = SandboxLimits(wall_clock_s=timeout_s + GRACE_S, output_bytes=OUTPUT_BYTES)
    plan = "\n".join([nonce, str(len(watched)), *watched, *tests]).encode("utf-8", "surrogateescape")
    sandbox = await factory.create(tree, limits)
    try:
        try:
            result = await sandbox.exec(_command(grader), timeout_s=timeout_s, stdin=plan)
            answer = read_answer(result.output, nonce, tests)
            altered = await _altered(sandbox, tree, watched, answer.placed) if answer.started else ()
        finally:
            await sandbox.destroy()
    except SandboxError as error:
        raise DiedUnderTests(str(error)) from error
    if not answer.started:
        said = result.output[-500:].decode(errors="replace")
        raise SandboxError(f"the {grader} runner did not start ({result.end}, status {result.returncode}): {said!r}")
    return TestRun(
        result.end,
        result.returncode,
        answer.ended,
        answer.tests,
        altered,
        answer.misconduct,
        answer.killed,
        timeout_s,
        result.duration_s,
    )


async def _altered(
    sandbox: Sandbox, tree: Mapping[str, bytes], watched: Sequence[str], placed: Sequence[str]
) -> tuple[str, ...]:
    """Watched files with another content than was put in, or another inode or time of change than at the start."""
    if not watched:
        return ()
    altered = {path for path in watched if await _content(sandbox, path) != tree[path]}
    if not altered:
        look = ["python3", "-I", "-S", "-c", _LOOK, *watched]
        result = await sandbox.exec(look, timeout_s=LOOK_TIMEOUT_S)
        now = result.output.decode(errors="replace").split("\n")
        altered = {path for path, then, is_now in zip(watched, placed, now, strict=False) if then != is_now}
    return tuple(sorted(altered))


def _command(grader: Literal["calls", "pytest"]) -> list[str]:
    isolation = ["-I", "-S"] if grader == "calls" else ["-I"]
    return ["python3", *isolation, *_NO_BYTECODE, "-c", _runner(grader)]


@cache
def _runner(grader: str) -> str:
    """Source of a runner."""
    return Path(__file__).with_name(f"run_{grader}.py").read_text()


async def _content(sandbox: Sandbox, path: str) -> bytes | None:
    try:
        return await sandbox.read_file(path)
    except FileNotFoundError:
        return None
