"""Runs named tests of a tree in a fresh sandbox, and reads what the runner says of each."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from stepwell.sandbox.protocol import ExecEnd, Sandbox, SandboxError, SandboxFactory, SandboxLimits

OUTPUT_BYTES = 1 << 20
GRACE_S = 60.0
"""Life of the sandbox beyond the wall clock of the tests."""


@dataclass(frozen=True)
class Reported:
    """What the runner said of one test."""

    passed: bool
    detail: str
    """For one that failed `file:line: exception`, where the line is the test's if it can be told."""


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
    """Watched files that were not as they had been put in when the run was over."""


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
        SandboxError: the sandbox could not be made, died, or the runner did not start in it.
    """
    nonce = secrets.token_hex(16)
    limits = SandboxLimits(wall_clock_s=timeout_s + GRACE_S, output_bytes=OUTPUT_BYTES)
    sandbox = await factory.create(tree, limits)
    try:
        result = await sandbox.exec(
            _command(grader), timeout_s=timeout_s, stdin="\n".join([nonce, *tests]).encode("utf-8", "surrogateescape")
        )
        altered = tuple([path for path in watched if await _content(sandbox, path) != tree[path]])
    finally:
        await sandbox.destroy()
    started, ended, reported = _read_answer(result.output, nonce, tests)
    if not started:
        said = result.output[-500:].decode(errors="replace")
        raise SandboxError(f"the {grader} runner did not start ({result.end}, status {result.returncode}): {said!r}")
    return TestRun(result.end, result.returncode, ended, reported, altered)


def _read_answer(output: bytes, nonce: str, tests: Sequence[str]) -> tuple[bool, bool, dict[str, Reported]]:
    """Whether it started, whether it ended, and the tests, from the lines with the nonce: others printed the rest."""
    started = ended = False
    reported: dict[str, Reported] = {}
    for line in output.decode(errors="replace").split("\n"):
        match line.split("\t"):
            case [said, "start"] if said == nonce:
                started = True
            case [said, "end"] if said == nonce:
                ended = True
            case [said, number, outcome, *detail] if said == nonce and number.isdigit() and int(number) < len(tests):
                reported[tests[int(number)]] = Reported(outcome == "passed", " ".join(detail))
            case _:
                continue
    return started, ended, reported


def _command(grader: Literal["calls", "pytest"]) -> list[str]:
    isolation = ["-I", "-S"] if grader == "calls" else ["-I"]
    return ["python3", *isolation, "-c", _runner(grader)]


@cache
def _runner(grader: str) -> str:
    """Source of a runner."""
    return Path(__file__).with_name(f"run_{grader}.py").read_text()


async def _content(sandbox: Sandbox, path: str) -> bytes | None:
    try:
        return await sandbox.read_file(path)
    except FileNotFoundError:
        return None
