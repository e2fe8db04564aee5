"""What the tests of a package run, recorded in a sandbox: outcomes, lines, and the calls that they make themselves."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from stepwell.sandbox.protocol import ExecEnd, SandboxFactory, SandboxLimits

ANSWER = ".recording.json"
"""File of the work tree that the recorder writes."""
WALL_CLOCK_S = 300.0
"""A recording at most. Only what no traced line is part of gets so far, such as an endless loop inside a C function."""


class RecordedCall(BaseModel):
    """One call that a test made into the package."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """`module:qualified.name`."""
    bound: bool
    """Whether the first argument is the object or class that a method belongs to."""
    arguments: tuple[str, ...]
    """As they would be written; `…` for one that cannot be shown."""
    result: str | None
    """As text, `list` for a generator that was used up; None if there was none or it cannot be shown."""
    error: str | None
    """Exception that ended it."""
    yields: tuple[str | None, ...]
    """First values of a generator."""
    returned: bool
    """Whether it came to its end without an exception."""


class RecordedTest(BaseModel):
    """One test."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    passed: bool
    failed: bool = False
    """In any of its phases; a skipped test too."""
    error: str | None = None
    """What ended it."""
    lines: dict[str, frozenset[int]] = Field(default_factory=dict[str, frozenset[int]])
    """Path of a source to the lines that ran."""
    calls: tuple[RecordedCall, ...] = ()


@dataclass(frozen=True)
class Recording:
    """One run of the recorder that came to its end."""

    tests: dict[str, RecordedTest]
    """By id."""
    spent: int
    """Lines of the work tree that ran, the first of a function left out."""

    @property
    def passed(self) -> list[str]:
        """Ids of the tests that passed."""
        return sorted(test for test, said in self.tests.items() if said.passed and not said.failed)


@dataclass(frozen=True)
class Unfinished:
    """A run of the recorder that did not come to its end, as an endless loop does not."""

    cause: str


async def record(
    files: Mapping[str, str],
    sources: Sequence[str],
    folders: Sequence[str],
    factory: SandboxFactory,
    *,
    tests: Iterable[str] = (),
    budget: int,
) -> Recording | Unfinished:
    """Runs tests of a tree, and says what they run.

    Args:
        files: Path to text of the work tree, tests included.
        sources: Paths whose lines and functions are of interest.
        folders: Folders and files of the tests.
        factory: Makes the sandbox, with pytest in its site-packages.
        tests: Ids to run; by default all.
        budget: Lines of the work tree that may run.

    Raises:
        SandboxError: the sandbox could not be made, or died.
    """
    plan = {"tests": sorted(tests), "sources": list(sources), "folders": list(folders), "budget": budget}
    tree = {path: text.encode() for path, text in files.items()}
    sandbox = await factory.create(tree, SandboxLimits(wall_clock_s=2 * WALL_CLOCK_S))
    try:
        command = ["python3", "-I", "-c", _program()]
        result = await sandbox.exec(command, timeout_s=WALL_CLOCK_S, stdin=json.dumps(plan).encode())
        if result.end is not ExecEnd.EXITED:
            return Unfinished(f"it did not end within {WALL_CLOCK_S} s")
        try:
            content = await sandbox.read_file(ANSWER)
        except FileNotFoundError:
            said = result.output[-300:].decode(errors="replace")
            return Unfinished(f"it ended with status {result.returncode} before it could answer: {said}")
    finally:
        await sandbox.destroy()
    answer = json.loads(content)
    if answer["ended"] == "budget":
        return Unfinished(f"it ran more than {budget} lines")
    return Recording(
        {test: RecordedTest.model_validate(said) for test, said in answer["tests"].items()}, answer["spent"]
    )


@cache
def _program() -> str:
    """Source of the recorder; it is run in the sandbox, never imported here."""
    return Path(__file__).with_name("record_tests.py").read_text()
