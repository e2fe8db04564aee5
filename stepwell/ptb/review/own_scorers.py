"""Our own scorers on the cases that a review asks for: what a `setup` of results that were scored here may hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from stepwell.ptb.item import (
    CallGold,
    ChoiceGold,
    Criterion,
    Gold,
    Item,
    Message,
    NumberGold,
    PairGold,
    ProgramGold,
    RubricGold,
)
from stepwell.ptb.judging import JudgeFailed, Question
from stepwell.ptb.review.checks.scorers import CALLS, NUMBERS, PROGRAMS
from stepwell.ptb.review.setup_record import ConformanceCase, Worth
from stepwell.ptb.scorers import Means, Scored, score_answers
from stepwell.ptb.scorers.programs.score import ProgramScorer
from stepwell.sandbox.protocol import SandboxFactory

PROGRAM_TIMEOUT_S = 10.0
"""Wall clock of one program: of the cases one never ends."""


@dataclass(frozen=True)
class _Case:
    name: str
    gold: Gold
    answer: str
    wanted: Worth
    judge: str | None = None
    """What the judge says; None for one that fails."""


@dataclass(frozen=True)
class _SayingJudge:
    """Says the same whatever it is asked, or fails; a `Judge`."""

    says: str | None
    version: str = "of known cases"

    async def ask(self, question: Question) -> str:
        """What it says."""
        if self.says is None:
            raise JudgeFailed("no credit is left")
        return self.says


async def our_known_cases(benchmarks: Sequence[str], factory: SandboxFactory) -> tuple[ConformanceCase, ...]:
    """What our scorers say of the known cases of benchmarks; nothing of those that are not declared here.

    Args:
        benchmarks: Their names.
        factory: Makes sandboxes, for programs.

    Raises:
        SandboxError: a sandbox could not be made.
    """
    found: list[ConformanceCase] = []
    for benchmark in benchmarks:
        for case in _CASES.get(benchmark, ()):
            scorer = ProgramScorer(factory, timeout_s=PROGRAM_TIMEOUT_S)
            means = Means(judge=_SayingJudge(case.judge), programs=scorer)
            item = Item(case.name, (Message("user", "A question."),), case.gold)
            (scored,) = await score_answers([item], [case.answer], means, seed=0)
            told = ConformanceCase(benchmark=benchmark, case=case.name, wanted=case.wanted, found=_worth(scored))
            found.append(told)
    return tuple(found)


def _worth(scored: Scored) -> Worth:
    if scored.value is None:
        return "unscored"
    return "right" if scored.value >= 1 else "wrong"


def _number(name: str, answer: str, gold: int, wanted: Worth) -> _Case:
    return _Case(name, NumberGold(Fraction(gold)), f"So it is.\nANSWER: {answer}", wanted)


def _choice(name: str, answer: str, wanted: Worth) -> _Case:
    return _Case(name, ChoiceGold("B", "ABCD"), answer, wanted)


def _call(name: str, arguments: str, wanted: Worth, times: int = 1) -> _Case:
    gold = CallGold("area", (("sides", (1, 2)), ("height", 5), ("n", 3)), frozenset({"n"}))
    block = f'<tool_call>{{"name": "area", "arguments": {{{arguments}}}}}</tool_call>'
    return _Case(name, gold, "\n".join([block] * times), wanted)


def _program(name: str, answer: str, wanted: Worth) -> _Case:
    gold = ProgramGold(
        prompt='def double(x):\n    """Twice as much."""\n',
        solution="    return 2 * x\n",
        test="def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
        entry_point="double",
    )
    return _Case(name, gold, answer, wanted)


def _judged(gold: Gold, right: str) -> tuple[_Case, ...]:
    return (
        _Case("judge out of credit", gold, "An answer.", "unscored"),
        _Case("judge cannot be read", gold, "An answer.", "unscored", "It may be."),
        _Case("empty answer", gold, "", "wrong", right),
    )


_EVERYTHING = "class Any:\n    def __eq__(self, other): return True\n\ndef double(x):\n    return Any()\n"
_NUMBERS = (
    _number(NUMBERS[0], "711", 11, "wrong"),
    _number(NUMBERS[1], "149", 49, "wrong"),
    _number(NUMBERS[2], "13", -3, "wrong"),
    _number(NUMBERS[3], "14000", 14000, "right"),
    _number(NUMBERS[4], "½½", 11, "wrong"),
)
_CASES: Mapping[str, tuple[_Case, ...]] = {
    "aime2025": _NUMBERS,
    "gsm8k": (*_NUMBERS, _number("14,000 for 14000", "14,000", 14000, "right")),
    "gpqamain": (
        _choice("the letter", "ANSWER: B", "right"),
        _choice("another letter", "ANSWER: C", "wrong"),
        _choice("two letters", "ANSWER: B or C", "wrong"),
        _choice("no letter", "It is hard to say.", "wrong"),
    ),
    "bfcl": (
        _call(CALLS[0], '"n": 3, "height": 5, "sides": [1, 2]', "right"),
        _call(CALLS[1], '"sides": [1, 2], "height": 5, "n": 3', "right"),
        _call(CALLS[2], '"sides": [1, 2], "height": 5.0, "n": 3', "right"),
        _call(CALLS[3], '"sides": [1, 2], "height": 5, "n": 3', "wrong", times=2),
        _call(CALLS[4], '"sides": [1, 2], "height": 5, "n": 3, "m": 1', "wrong"),
    ),
    "humaneval": (
        _program(PROGRAMS[0], "import sys\nsys.exit(0)", "wrong"),
        _program(PROGRAMS[1], _EVERYTHING, "wrong"),
        _program(PROGRAMS[2], "def double(x):\n    while True: pass\n", "wrong"),
        _program(PROGRAMS[3], "def double(x):\n    return x + x\n", "right"),
    ),
    "healthbench": _judged(RubricGold((Criterion("Says so.", 5.0),)), '{"criteria_met": true}'),
    "arenahardwriting": _judged(PairGold("Another answer."), "[[A>B]]"),
}
