"""What a runner said on its channel, read strictly. Pure.

The runner has a nonce before any tested code is loaded, and every line that it writes begins with it: `start` once and
first, each test at most once, `end` once and last. Tested code runs in the runner's process and can write there too,
with or without the nonce; whatever is out of order is told and takes the run's credit away.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

Status = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
"""`failed`: the test itself; `error`: its set-up, tear-down or collection; the last two as pytest means them."""

_STATUSES: frozenset[str] = frozenset(get_args(Status))
_LEFT_OUT = re.compile(r"\[\.\.\. \d+ bytes left out \.\.\.\]")
_KILLED = re.compile(r"\[killed: (.*)\]")


@dataclass(frozen=True)
class Reported:
    """What the runner said of one test."""

    status: Status
    detail: str
    """For one that failed `file:line: exception`, where the line is the test's if it can be told."""

    @property
    def passed(self) -> bool:
        """Whether it ran and passed."""
        return self.status == "passed"


@dataclass(frozen=True)
class Answer:
    """All that came over the channel."""

    started: bool = False
    placed: tuple[str, ...] = ()
    """Inode and time of the last change of each watched file, in order, before any tested code was loaded."""
    ended: bool = False
    """The runner came to its own end."""
    tests: dict[str, Reported] = field(default_factory=dict[str, Reported])
    """By id; those that were not reported are missing."""
    misconduct: str | None = None
    """What the runner never does, in words, and was done."""
    killed: str | None = None
    """Why the sandbox ended the command, if it did."""


def read_answer(output: bytes, nonce: str, tests: Sequence[str]) -> Answer:
    """The answer in the output of a runner that was given the nonce and the tests.

    Args:
        output: All that came, in order; the sandbox may have added notes of its own.
        nonce: What the runner's lines begin with.
        tests: Ids, in the order in which the runner numbers them.
    """
    started = ended = False
    placed: tuple[str, ...] = ()
    reported: dict[str, Reported] = {}
    misconduct: list[str] = []
    foreign = 0
    killed: str | None = None
    for line in output.decode(errors="replace").split("\n"):
        said, *fields = line.split("\t")
        if said != nonce:
            note = _KILLED.fullmatch(line)
            if note:
                killed = note[1]
            elif _LEFT_OUT.fullmatch(line):
                misconduct.append("more was written to the grader's channel than it keeps")
            elif started and not ended:
                foreign += len(line)
            continue
        if fields[:1] == ["start"] and len(fields) == 2 and not started:
            started, placed = True, tuple(fields[1].split())
        elif ended or not started:
            misconduct.append("something was reported before the runner's start or after its end")
        elif fields == ["end"]:
            ended = True
        elif len(fields) == 3 and fields[1] in _STATUSES and fields[0].isdecimal() and int(fields[0]) < len(tests):
            test = tests[int(fields[0])]
            if test in reported:
                misconduct.append(f"{test} was reported twice")
            reported.setdefault(test, Reported(_status(fields[1]), fields[2]))
        else:
            misconduct.append("a report was no report")
    if foreign:
        misconduct.append(f"{foreign} bytes that are no report were written to the grader's channel")
    return Answer(started, placed, ended, reported, misconduct[0] if misconduct else None, killed)


def _status(text: str) -> Status:
    for status in get_args(Status):
        if text == status:
            return status
    raise ValueError(f"{text!r} is no status; there are {sorted(_STATUSES)}")
