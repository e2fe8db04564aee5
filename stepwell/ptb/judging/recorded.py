"""Judgements in a file: each is recorded as it comes, and can be played back instead of asking again.

One JSON object a line: `judge`, `question` (the digest of all that was asked), `messages`, `seed`, and `said`, or
`failed` with the reason. A question that was asked twice has two lines, of which the last counts. What a writer that
was killed left of a line at the end of a file is no judgement: it is passed over when read, and cut off before more is
recorded.
"""

import os
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stepwell.ptb.judging.judge import Judge, JudgeFailed, Question

_BEGINNING = b'{"judge":'
"""Of each line."""


class BrokenRecord(ValueError):
    """A file does not hold recorded judgements."""


class Judgement(BaseModel):
    """One line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    """Version of the judge."""
    question: str
    """Digest of messages and seed."""
    messages: tuple[tuple[str, str], ...]
    """Role and content of each."""
    seed: Annotated[int, Field(ge=0)]
    said: str | None = None
    failed: str | None = None
    """Why nothing was said."""


class RecordingJudge:
    """Asks another judge, and appends what came to a file; a `Judge`.

    Args:
        judge: That is asked.
        path: File that nobody else writes to; made if there is none.

    Raises:
        BrokenRecord: the file holds something else than judgements.
    """

    def __init__(self, judge: Judge, path: Path) -> None:
        self._judge = judge
        self._path = path
        if path.exists():
            _end_at_a_line(path)

    @property
    def version(self) -> str:
        """Of the judge that is asked."""
        return self._judge.version

    async def ask(self, question: Question) -> str:
        """What the judge says, recorded before it is returned; so is its failure before it is raised."""
        try:
            said = await self._judge.ask(question)
        except JudgeFailed as error:
            self._append(question, None, str(error))
            raise
        self._append(question, said, None)
        return said

    def _append(self, question: Question, said: str | None, failed: str | None) -> None:
        line = Judgement(
            judge=self.version,
            question=question.digest,
            messages=tuple((one.role, one.content) for one in question.messages),
            seed=question.seed,
            said=said,
            failed=failed,
        )
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line.model_dump_json() + "\n")


class RecordedJudge:
    """Says what was recorded, of one judge; a `Judge`. What was not asked then is not scored now.

    Args:
        path: File that a `RecordingJudge` wrote.

    Raises:
        BrokenRecord: the file cannot be read, or holds judgements of several judges or none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._judgements = {one.question: one for one in read_judgements(path)}
        versions = {one.judge for one in self._judgements.values()}
        if len(versions) != 1:
            raise BrokenRecord(f"{path} holds judgements of {sorted(versions)}: wanted those of one judge")
        self._version = versions.pop()

    @property
    def version(self) -> str:
        """Of the judge that was asked then."""
        return self._version

    async def ask(self, question: Question) -> str:
        """What was said then; raises `JudgeFailed` if nothing was, or the question was not asked."""
        found = self._judgements.get(question.digest)
        if found is None:
            raise JudgeFailed(f"{self._path} has no judgement on this question: ask the judge itself")
        if found.said is None:
            raise JudgeFailed(str(found.failed))
        return found.said


def read_judgements(path: Path) -> list[Judgement]:
    """All lines of a file, in order.

    Raises:
        BrokenRecord: it cannot be read, or a line is no judgement.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BrokenRecord(f"{path} cannot be read: {error}; name a file of recorded judgements") from error
    found: list[Judgement] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or (number == len(lines) and _is_torn(line)):
            continue
        try:
            found.append(Judgement.model_validate_json(line))
        except ValidationError as error:
            said = error.errors(include_url=False)[0]
            raise BrokenRecord(f"line {number} of {path} is no judgement: {said['loc']}: {said['msg']}") from error
    return found


def _is_torn(last: bytes) -> bool:
    """Whether what no newline ends is the beginning of a line that was being written, and no whole one."""
    if last[: len(_BEGINNING)] != _BEGINNING[: len(last)]:
        return False
    try:
        Judgement.model_validate_json(last)
    except ValidationError:
        return True
    return False


def _end_at_a_line(path: Path) -> None:
    """Makes the file end with its last whole judgement."""
    read_judgements(path)
    last = path.read_bytes().rpartition(b"\n")[2]
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        if _is_torn(last):
            file.truncate(end - len(last))
        elif last:
            file.write(b"\n")
