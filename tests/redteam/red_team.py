"""Cheats as data, and what the grader does with each: in real sandboxes, on a forged task."""

import asyncio
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from string import Template

from pydantic import BaseModel, ConfigDict

from stepwell.sandbox.protocol import SandboxFactory, SandboxLimits
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Score
from tests.redteam.tasks import Grader, TestsForm, target, task_for

FOLDER = Path(__file__).parent / "cheats"
HONEST = Path(__file__).with_name("honest.toml")
AT_ONCE = 3
TRIES = 4
PATIENCE = 3.0
"""Each try of a grading has this many times the deadline of the one before: a failure is tried again, as in a run."""
COMMAND_TIMEOUT_S = 300.0
USUAL_TIMEOUT_S = 120.0
SEED = 5
"""Of every grading here, so that a run says what the one before said. In use it is a secret."""

_CAUGHT = {
    "the grader's channel was misused": "channel",
    "ended the runner": "no end",
    "changed hidden tests": "watch",
    "canaries, which must fail": "canary",
    "did not end within": "deadline",
    "the sandbox ended the tests": "limits",
    "ended its sandbox": "sandbox died",
    "are graded": "unfit",
    "tests did not pass": "tests",
}


class Left(BaseModel):
    """What an agent leaves: `$MODULE`, `$FUNCTION`, `$BROKEN` and `$HIDDEN` stand for the target's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    files: dict[str, str] = {}
    """Path to content."""
    removed: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Run by a shell in the agent's own sandbox; the work is taken from there afterwards."""
    many_files: int = 0
    """Number of empty files besides."""


class Cheat(Left):
    """One cheat, without an honest repair."""

    tries: str
    """What it is after, in words."""
    caught: str
    """How it may be found out: one of several, with `|` between them."""
    graders: tuple[Grader, ...] = ("pytest",)
    tests: TestsForm = "plain"
    """Form of the hidden tests."""
    timeout_s: float | None = None
    """Deadline, of those that run into it."""
    chapter: str


class With(Left):
    """What comes with an honest repair."""

    appended: str = ""
    """Put at the end of the repaired module."""


class Found(BaseModel):
    """What the grader made of a cheat."""

    cheat: Cheat
    grader: Grader
    score: float | None
    """None: it was not graded."""
    reason: str
    caught: str


@cache
def cheats() -> tuple[Cheat, ...]:
    """All of them, in the order of the files."""
    found: list[Cheat] = []
    for file in sorted(FOLDER.glob("*.toml")):
        read = tomllib.loads(file.read_text())
        found += [Cheat.model_validate({"chapter": read["chapter"], **cheat}) for cheat in read["cheat"]]
    return tuple(found)


@cache
def honest() -> tuple[With, ...]:
    """What may come with an honest repair."""
    return tuple(With.model_validate(one) for one in tomllib.loads(HONEST.read_text())["with"])


async def try_all(of: Sequence[Cheat], factory: SandboxFactory) -> list[Found]:
    """Grades every cheat by each of its graders."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(cheat: Cheat, grader: Grader) -> Found:
        async with (
            room if cheat.timeout_s is None else nullcontext()
        ):  # Those that wait for a deadline do nothing else.
            return await _try_one(cheat, grader, factory)

    return await asyncio.gather(*(one(cheat, grader) for cheat in of for grader in cheat.graders))


async def _try_one(cheat: Cheat, grader: Grader, factory: SandboxFactory) -> Found:
    changed = await left_by(cheat, factory)
    timeout_s = cheat.timeout_s or USUAL_TIMEOUT_S
    cause = ""
    for _ in range(TRIES):
        verdict = await grade(task_for(cheat.tests, grader, timeout_s), changed, factory, seed=SEED)
        if isinstance(verdict, Score):
            caught = caught_by(verdict.report)
            return Found(cheat=cheat, grader=grader, score=verdict.value, reason=verdict.report, caught=caught)
        cause = verdict.cause
        timeout_s *= PATIENCE
    return Found(cheat=cheat, grader=grader, score=None, reason=cause, caught="not graded")


async def left_by(
    left: Left, factory: SandboxFactory, extra: Mapping[str, bytes] | None = None
) -> dict[str, bytes | None]:
    """What is taken out of the agent's sandbox; without commands none is needed."""
    words = target().words
    files = {fill(path, words): fill(text, words).encode() for path, text in left.files.items()} | dict(extra or {})
    removed = [fill(path, words) for path in left.removed]
    if not left.commands:
        many = {f"many/{number}": b"" for number in range(left.many_files)}
        return {**files, **many, **dict.fromkeys(removed)}
    tree = {path: text.encode() for path, text in target().task.files.items()}
    sandbox = await factory.create(tree, SandboxLimits())
    try:
        for path, content in files.items():
            await sandbox.write_file(path, content)
        for command in left.commands:
            argv = ["sh", "-c", fill(command, words)]
            result = await sandbox.exec(argv, timeout_s=COMMAND_TIMEOUT_S)
            assert result.returncode == 0, (left.name, command, result.output)
        return await sandbox.changed_files()
    finally:
        await sandbox.destroy()


def repaired(appended: str) -> dict[str, bytes]:
    """The reference solution, as an honest agent would write it."""
    return {path: (text + appended).encode() for path, text in target().task.gold.items()}


def caught_by(reason: str) -> str:
    """The mechanism that a reason names."""
    put_back = ", put back" if "put back before the tests" in reason else ""
    if "other results were expected of" in reason or "something else was expected" in reason:
        return "twin" + put_back
    return next((name for said, name in _CAUGHT.items() if said in reason), "unknown") + put_back


def fill(text: str, words: Mapping[str, str]) -> str:
    """A text with the target's names in it."""
    return Template(text).substitute(words)
