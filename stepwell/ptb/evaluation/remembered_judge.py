"""A judge whose judgements are kept: what it said once is not asked, nor paid for, again."""

from pathlib import Path

from stepwell.ptb.judging import BrokenRecord, Judge, JudgeFailed, Question, RecordingJudge
from stepwell.ptb.judging.recorded import read_judgements


class RememberedJudge:
    """Says what the file has, and asks another judge for the rest; a `Judge`.

    Args:
        judge: Asked for what is not in the file; None to ask nobody.
        path: File of judgements, as `RecordingJudge` writes it; made if missing.

    Raises:
        BrokenRecord: the file holds something else, or judgements of another judge, or none and there is no judge.
    """

    def __init__(self, judge: Judge | None, path: Path) -> None:
        self._path = path
        self._known = {one.question: one for one in (read_judgements(path) if path.exists() else ())}
        versions = {one.judge for one in self._known.values()} | ({judge.version} if judge else set())
        if len(versions) != 1:
            raise BrokenRecord(f"{path} and the judge make {sorted(versions)}: wanted one version of one judge")
        self._version = versions.pop()
        self._asking = None if judge is None else RecordingJudge(judge, path)

    @property
    def version(self) -> str:
        """Of the judge."""
        return self._version

    async def ask(self, question: Question) -> str:
        """What it says, or said; raises `JudgeFailed` as the judge, or if there is nobody to ask."""
        known = self._known.get(question.digest)
        if known is not None and known.said is not None:
            return known.said
        if self._asking is None:
            raise JudgeFailed(f"{self._path} has no judgement on this question: name the judge, so that it is asked")
        return await self._asking.ask(question)
