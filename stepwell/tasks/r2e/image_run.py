"""Runs a task's hidden tests in a sandbox made from its image, in which no agent was.

The order is what keeps the agent out: the image's own tests and command are looked at first, then the agent's files
come in (but for what is guarded), then the hidden tests, and only then does anything run.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from stepwell.sandbox.protocol import ExecEnd, ExecResult, Sandbox, SandboxError
from stepwell.tasks.grading.graded_tree import is_guarded
from stepwell.tasks.r2e.entrypoint import Entrypoint, parse_entrypoint
from stepwell.tasks.r2e.expected import TESTS_FOLDER, ExpectedTests, Status

WORK = "/testbed"
"""The repository in an R2E image."""
PROTECTED = (".venv", ".git", TESTS_FOLDER, "run_tests.sh")
"""What an agent's change never enters the graded tree from."""
TEST_TIMEOUT_S = 60.0
"""Wall clock of the tests, by the benchmark's rules (MLCommons training_policies #598)."""
PREPARE_TIMEOUT_S = 60.0
OUTPUT_BYTES = 8 << 20
"""Output that a sandbox for grading must keep: thousands of node ids."""

_PREPARE = f"""
cd "$1" || exit 1
if [ -L {TESTS_FOLDER} ] || [ ! -d {TESTS_FOLDER} ]; then
  rm -f {TESTS_FOLDER} || exit 1
  for place in /{TESTS_FOLDER} /root/{TESTS_FOLDER}; do
    if [ -d "$place" ]; then cp -R "$place" {TESTS_FOLDER} || exit 1; break; fi
  done
  mkdir -p {TESTS_FOLDER} || exit 1
fi
for script in run_tests.sh /run_tests.sh /root/run_tests.sh; do
  if [ -f "$script" ]; then cat "$script"; exit; fi
done
"""
_CLEAR = """
import os, shutil, sys
for path in filter(None, sys.stdin.buffer.read().split(b"\\0")):
    parts = path.split(b"/")
    for length in range(1, len(parts) + 1):
        place = b"/".join(parts[:length])
        if os.path.islink(place) or (os.path.isfile(place)):
            os.unlink(place)
        elif length == len(parts) and os.path.isdir(place):
            shutil.rmtree(place)
"""


@dataclass(frozen=True)
class ImageRun:
    """One run of the hidden tests."""

    end: ExecEnd
    returncode: int
    started: bool
    """The runner wrote its first line: what was wrong before that is not the agent's doing."""
    ended: bool
    """The runner came to its own end."""
    found: dict[str, Status]
    """What the tests gave, by the ids of `ExpectedTests.expected`."""
    altered: tuple[str, ...]
    """Hidden test files that were not as they had been put in when the run was over."""
    misconduct: str | None
    """What the runner never does, in words, and was done."""
    said: str
    """End of the output without the runner's lines, for people."""


async def run_in_image(
    sandbox: Sandbox,
    tests: Mapping[str, str],
    expected: ExpectedTests,
    changed: Mapping[str, bytes | None],
    *,
    work: str = WORK,
    timeout_s: float = TEST_TIMEOUT_S,
) -> ImageRun:
    """Puts the agent's changes and the hidden tests into a fresh sandbox of the task's image and runs the tests.

    Args:
        sandbox: Fresh, of the image as it is, keeping `OUTPUT_BYTES` of output; what is in it changes.
        tests: Hidden test files by name.
        expected: Of the same tests.
        changed: What the agent changed: path in the work tree to content, None for what it removed.
        work: Absolute path of the work tree inside.
        timeout_s: Wall clock of the tests.

    Raises:
        SandboxError: the sandbox died, or the image is not as an image is: infrastructure, never a score.
        UnknownEntrypoint: the image's `run_tests.sh` is not of the form.
    """
    entrypoint = await _prepare(sandbox, work, expected)
    await _place(sandbox, work, entrypoint, changed)
    hidden = {f"{TESTS_FOLDER}/{name}": code.encode() for name, code in tests.items()}
    for path, code in hidden.items():
        await sandbox.write_file(path, code)
    nonce = secrets.token_hex(16)
    plan = [nonce, expected.kind, work, TESTS_FOLDER, *entrypoint.pytest_options]
    result = await sandbox.exec(
        command_of(entrypoint, work), timeout_s=timeout_s, stdin="\n".join(plan).encode("utf-8", "surrogateescape")
    )
    altered = tuple([path for path, code in hidden.items() if await _content(sandbox, path) != code])
    return _read_answer(result, nonce, expected, altered)


def command_of(entrypoint: Entrypoint, work: str) -> list[str]:
    """The command that runs the runner in an environment of its own, of which nothing is inherited."""
    environment = {
        "PATH": f"{work}/.venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "VIRTUAL_ENV": f"{work}/.venv",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        **entrypoint.environment,
    }
    command = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items()), *entrypoint.before]
    return [*command, _python(entrypoint, work), *entrypoint.python_options, "-c", _runner()]


async def _prepare(sandbox: Sandbox, work: str, expected: ExpectedTests) -> Entrypoint:
    """Makes the tests' folder a real one, with what the image has in it, and tells how the image runs tests."""
    result = await sandbox.exec(["/bin/sh", "-c", _PREPARE, "prepare", work], timeout_s=PREPARE_TIMEOUT_S)
    if result.end is not ExecEnd.EXITED or result.returncode != 0:
        raise SandboxError(f"the image cannot be prepared for grading: {_tail(result)}; is its repository at {work}?")
    script = result.output.decode(errors="replace")
    return parse_entrypoint(script) if script.strip() else Entrypoint(kind=expected.kind)


async def _place(sandbox: Sandbox, work: str, entrypoint: Entrypoint, changed: Mapping[str, bytes | None]) -> None:
    """Puts the agent's changes in, but for what is guarded."""
    allowed = {path: data for path, data in sorted(changed.items()) if not is_guarded(path, PROTECTED)}
    if not allowed:
        return
    clear = [_python(entrypoint, work), "-I", "-S", "-c", _CLEAR]
    paths = "\0".join(allowed).encode("utf-8", "surrogateescape")
    result = await sandbox.exec(clear, timeout_s=PREPARE_TIMEOUT_S, stdin=paths)
    if result.end is not ExecEnd.EXITED or result.returncode != 0:
        raise SandboxError(f"the image's interpreter {clear[0]} does not run: {_tail(result)}")
    for path, data in allowed.items():
        if data is not None:
            await sandbox.write_file(path, data)


def _read_answer(result: ExecResult, nonce: str, expected: ExpectedTests, altered: tuple[str, ...]) -> ImageRun:
    """Reads the runner's lines strictly: one start, each test once, one end."""
    started = ended = False
    reported: dict[str, Status] = {}
    misconduct: list[str] = []
    rest: list[str] = []
    for line in result.output.decode(errors="replace").split("\n"):
        said, *fields = line.split("\t")
        status = _status_of(fields[0]) if fields else None
        if said != nonce:
            rest.append(line)
        elif fields[:1] == ["start"] and not started:
            started = True
        elif fields[:1] == ["end"] and started and not ended:
            ended = True
            if fields[1:]:
                rest.append(f"the runner ended by {fields[1]}")
        elif ended or not started:
            misconduct.append("something was reported before the runner's start or after its end")
        elif status is not None and len(fields) == 2:
            if fields[1] in reported:
                misconduct.append(f"{fields[1]} was reported twice")
            reported[fields[1]] = status
        else:
            misconduct.append("a report was no report")
    return ImageRun(
        end=result.end,
        returncode=result.returncode,
        started=started,
        ended=ended,
        found=expected.found(reported),
        altered=altered,
        misconduct=misconduct[0] if misconduct else None,
        said="\n".join(rest).strip()[-2000:],
    )


def _status_of(text: str) -> Status | None:
    return next((status for status in get_args(Status) if status == text), None)


async def _content(sandbox: Sandbox, path: str) -> bytes | None:
    try:
        return await sandbox.read_file(path)
    except FileNotFoundError:
        return None


def _python(entrypoint: Entrypoint, work: str) -> str:
    return entrypoint.python if entrypoint.python.startswith("/") else f"{work}/{entrypoint.python}"


def _tail(result: ExecResult) -> str:
    return f"{result.end}, status {result.returncode}, {result.output[-500:].decode(errors='replace').strip()!r}"


@cache
def _runner() -> str:
    return Path(__file__).with_name("run_hidden.py").read_text()
