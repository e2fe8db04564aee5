"""What the tests of a package run, recorded in a sandbox: outcomes, lines, and the calls that they make themselves."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from stepwell.sandbox.protocol import ExecEnd, SandboxError, SandboxFactory, SandboxLimits
from stepwell.tasks.packages.run_until_stuck import STUCK

ANSWER = ".recording.json"
"""File of the work tree that the recorder writes."""
LOOKS = 200
"""Looks, ten a second, between which nothing has moved and after which nothing will."""
ATTEMPTS = 3
"""Of a recording whose sandbox fails: that is no word about what is recorded either."""
WALL_CLOCK_S = 3600.0
"""A recording at most; no word about what was recorded, but about the machine."""


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
    spent: int = 0
    """How many lines of the work tree ran, each as often as it did, the first of a function left out."""
    asked: str | None = None
    """The first built-in function it called whose answer depends on the time, on chance or on another process."""
    calls: tuple[RecordedCall, ...] = ()


@dataclass(frozen=True)
class Recording:
    """One run of the recorder that came to its end."""

    tests: dict[str, RecordedTest]
    """By id."""
    cpu_s: float
    """Time of the processor, measured."""

    @property
    def passed(self) -> list[str]:
        """Ids of the tests that passed."""
        return sorted(test for test, said in self.tests.items() if said.passed and not said.failed)


@dataclass(frozen=True)
class Unfinished:
    """A run of the recorder that will not come to its end, as an endless loop does not: found without a clock."""

    cause: str


async def record(
    files: Mapping[str, str],
    sources: Sequence[str],
    folders: Sequence[str],
    factory: SandboxFactory,
    *,
    tests: Iterable[str] = (),
    budget: int,
    cpu_s: float,
) -> Recording | Unfinished:
    """Runs tests of a tree, and says what they run.

    Args:
        files: Path to text of the work tree, tests included.
        sources: Paths whose lines and functions are of interest.
        folders: Folders and files of the tests.
        factory: Makes the sandbox, with pytest in its site-packages.
        tests: Ids to run; by default all.
        budget: Lines of the work tree that may run.
        cpu_s: Time of the processor after which it is endless where no line of the work tree runs, as inside a C
            function: many times what any of it can need.

    Raises:
        SandboxError: `ATTEMPTS` times the sandbox could not be made, or died; or the machine had no time for it.
    """
    plan = {"tests": sorted(tests), "sources": list(sources), "folders": list(folders), "budget": budget}
    tree = {path: text.encode() for path, text in files.items()}
    for _ in range(ATTEMPTS - 1):
        with suppress(SandboxError):
            return await _record(tree, plan, factory, cpu_s)
    return await _record(tree, plan, factory, cpu_s)


async def _record(
    tree: Mapping[str, bytes], plan: Mapping[str, object], factory: SandboxFactory, cpu_s: float
) -> Recording | Unfinished:
    """One attempt."""
    sandbox = await factory.create(tree, SandboxLimits(wall_clock_s=2 * WALL_CLOCK_S))
    try:
        command = ["python3", "-I", "-S", "-c", _source("run_until_stuck.py"), str(cpu_s), str(LOOKS)]
        command += ["python3", "-I", "-c", _source("ask_world.py", "record_tests.py")]
        result = await sandbox.exec(command, timeout_s=WALL_CLOCK_S, stdin=json.dumps(plan).encode())
        if result.end is not ExecEnd.EXITED:
            raise SandboxError(
                f"tests that were recorded had neither ended after {WALL_CLOCK_S:g} s, nor used {cpu_s:g} s of "
                "processor, nor waited: the machine is too busy; try again, what is done is kept"
            )
        if result.returncode == STUCK:
            return Unfinished(result.output.decode(errors="replace"))
        try:
            content = await sandbox.read_file(ANSWER)
        except FileNotFoundError:
            said = result.output[-300:].decode(errors="replace")
            return Unfinished(f"it ended with status {result.returncode} before it could answer: {said}")
    finally:
        await sandbox.destroy()
    answer = json.loads(content)
    if answer["ended"] == "budget":
        return Unfinished(f"it ran more than {plan['budget']} lines")
    return Recording(
        {test: RecordedTest.model_validate(said) for test, said in answer["tests"].items()}, answer["cpu_s"]
    )


@cache
def _source(*names: str) -> str:
    """Source of programs that run in the sandbox and are not imported here."""
    return "\n".join(Path(__file__).with_name(name).read_text() for name in names)
