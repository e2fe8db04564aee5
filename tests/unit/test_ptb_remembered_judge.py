"""Judgements that are kept are not asked for again, whatever died."""

from pathlib import Path

import pytest

from stepwell.ptb.evaluation.remembered_judge import RememberedJudge
from stepwell.ptb.item import Message
from stepwell.ptb.judging import BrokenRecord, JudgeFailed, Question

ONE, TWO = (Question((Message("user", text),), 1) for text in ("one", "two"))


class CountingJudge:
    """Says how often it was asked; a `Judge`."""

    def __init__(self, version: str = "counts", *, fails: bool = False) -> None:
        self.version = version
        self.fails = fails
        self.asked = 0

    async def ask(self, question: Question) -> str:
        """Its number."""
        self.asked += 1
        if self.fails:
            raise JudgeFailed("out of credit")
        return str(self.asked)


async def test_what_was_said_is_said_again_and_a_failure_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "judgements.jsonl"
    first = RememberedJudge(CountingJudge(), path)
    assert await first.ask(ONE) == "1"
    failing = RememberedJudge(CountingJudge(fails=True), path)
    assert await failing.ask(ONE) == "1"
    with pytest.raises(JudgeFailed, match="out of credit"):
        await failing.ask(TWO)
    judge = CountingJudge()
    last = RememberedJudge(judge, path)
    assert (await last.ask(ONE), await last.ask(TWO), judge.asked) == ("1", "1", 1)


async def test_without_a_judge_only_what_was_said_is_said(tmp_path: Path) -> None:
    path = tmp_path / "judgements.jsonl"
    await RememberedJudge(CountingJudge(), path).ask(ONE)
    alone = RememberedJudge(None, path)
    assert (await alone.ask(ONE), alone.version) == ("1", "counts")
    with pytest.raises(JudgeFailed, match="name the judge"):
        await alone.ask(TWO)


async def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "judgements.jsonl"
    await RememberedJudge(CountingJudge(), path).ask(ONE)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    judge = CountingJudge()
    await RememberedJudge(judge, path).ask(TWO)
    assert judge.asked == 1
    assert path.read_bytes().startswith(whole)
    assert await RememberedJudge(None, path).ask(TWO) == "1"


async def test_judgements_of_another_judge_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "judgements.jsonl"
    await RememberedJudge(CountingJudge(), path).ask(ONE)
    with pytest.raises(BrokenRecord, match=r"\['another', 'counts'\]"):
        RememberedJudge(CountingJudge("another"), path)
    with pytest.raises(BrokenRecord, match="wanted one version"):
        RememberedJudge(None, tmp_path / "nothing")
