"""Scores programs by their publisher's tests, which they never meet. See `guest` for the three steps.

The exit status of an answer, what it prints and what it makes of `unittest` or of the interpreter's end say nothing: a
test passes on a value that came back, or it does not pass.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from stepwell.ptb.item import ProgramGold
from stepwell.ptb.scorers.programs.extract import program_in
from stepwell.ptb.scorers.worth import Scored
from stepwell.sandbox.protocol import ExecEnd, SandboxError, SandboxFactory, SandboxLimits

TIMEOUT_S = 30.0
"""Wall clock of one answer on all calls of its tests, as the published system gives."""
TRUSTED_TIMEOUT_S = 600.0
"""Wall clock of the publisher's own code for all items at once."""
RESULT_BYTES = 256 << 10
"""Most that one answer may return to all calls; the results of all answers are tested in one process."""
TRUSTED_BYTES = 64 << 20
AT_ONCE = 2
"""Answers that run at the same time."""

_ANSWER_LIMITS = SandboxLimits(wall_clock_s=TIMEOUT_S + 60, processes=16, output_bytes=RESULT_BYTES)
_TRUSTED_LIMITS = SandboxLimits(wall_clock_s=TRUSTED_TIMEOUT_S + 60, output_bytes=TRUSTED_BYTES)


KindT = TypeVar("KindT", list[Any], dict[str, Any])


class BrokenTests(ValueError):
    """The publisher's solution does not pass the publisher's tests here: the data or the interpreter are not theirs."""


class ProgramScorer:
    """Scores programs; what the tests of an item ask for is recorded once.

    Args:
        factory: Makes the sandboxes.
        timeout_s: Wall clock of one answer.
    """

    def __init__(self, factory: SandboxFactory, *, timeout_s: float = TIMEOUT_S) -> None:
        self._factory = factory
        self._timeout_s = timeout_s
        self._calls: dict[ProgramGold, list[object]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def score(self, answers: Sequence[tuple[str, ProgramGold]]) -> list[Scored]:
        """Worth of each answer, in order: 1 if all tests pass, else 0 with the reason.

        Raises:
            BrokenTests: the tests do not fit the publisher's solution.
            SandboxError: a sandbox could not be made, or died without an answer's doing: infrastructure, no score.
        """
        await self._record([gold for _, gold in answers])
        results = await asyncio.gather(*(self._run(answer, gold) for answer, gold in answers))
        work = [
            {**_tests(gold), "calls": self._calls[gold], "results": result}
            for (_, gold), result in zip(answers, results, strict=True)
        ]
        said = await self._trusted("check", work)
        return [_scored(one, gold) for one, (_, gold) in zip(said, answers, strict=True)]

    async def _record(self, golds: Sequence[ProgramGold]) -> None:
        new = [gold for gold in dict.fromkeys(golds) if gold not in self._calls]
        said = await self._trusted("record", [_tests(gold) | {"solution": gold.solution} for gold in new])
        for gold, one in zip(new, said, strict=True):
            calls = one.get("calls")
            if not isinstance(calls, list):
                raise BrokenTests(
                    f"the publisher's solution of {gold.entry_point} does not pass its own tests: {one.get('error')}; "
                    "take the file anew, and use a Python that it was made for"
                )
            self._calls[gold] = list(calls)  # pyright: ignore[reportUnknownArgumentType]  # coded values

    async def _trusted(self, mode: str, work: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
        """What the publisher's code did, all items in one sandbox."""
        if not work:
            return []
        sandbox = await self._factory.create({}, _TRUSTED_LIMITS)
        try:
            result = await sandbox.exec(_command(mode), timeout_s=TRUSTED_TIMEOUT_S, stdin=json.dumps(work).encode())
        finally:
            await sandbox.destroy()
        said = _objects(result.output, list)
        if len(said) != 1 or len(said[0]) != len(work):
            raise SandboxError(
                f"the publisher's tests did not end ({result.end}, status {result.returncode}): "
                f"{result.output[-300:]!r}; try again on a machine with more room"
            )
        return said[0]

    async def _run(self, answer: str, gold: ProgramGold) -> list[dict[str, object]]:
        """What the answer returned to each call."""
        if not answer.strip():
            return [{"why": "an empty answer"} for _ in self._calls[gold]]
        async with self._turns:
            program = program_in(answer, gold)
            try:
                return await self._attempt(program, gold)
            except _DiedInside:
                pass
            try:
                return await self._attempt(program, gold)
            except _DiedInside as error:
                await self._attempt(gold.prompt + gold.solution, gold)
                why = f"its sandbox died twice with it inside, and not with the publisher's solution: {error}"
                return [{"why": why} for _ in self._calls[gold]]

    async def _attempt(self, program: str, gold: ProgramGold) -> list[dict[str, object]]:
        calls = self._calls[gold]
        work = {"program": program, "entry_point": gold.entry_point, "calls": calls}
        sandbox = await self._factory.create({}, _ANSWER_LIMITS)
        try:
            try:
                result = await sandbox.exec(
                    _command("answer"), timeout_s=self._timeout_s, stdin=json.dumps(work).encode()
                )
            finally:
                await sandbox.destroy()
        except SandboxError as error:
            raise _DiedInside(str(error)) from error
        return _returned(result.output, len(calls), _ending(result.end, result.returncode, self._timeout_s))


class _DiedInside(SandboxError):
    """A sandbox was made, and died with a program in it."""


def _returned(output: bytes, calls: int, ending: str) -> list[dict[str, object]]:
    """The first word on each call; for a call without one, how the program ended."""
    said: dict[int, dict[str, object]] = {}
    whole: str | None = None
    for one in _objects(output, dict):
        number, value, why = one.get("call"), one.get("value"), one.get("why")
        word: dict[str, object] = {"value": value} if value is not None else {"why": str(why)}
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < calls:
            said.setdefault(number, word)
        elif number is None and isinstance(why, str) and whole is None:
            whole = why
    return [said.get(number, {"why": whole or ending}) for number in range(calls)]


def _ending(end: ExecEnd, returncode: int, timeout_s: float) -> str:
    if end is ExecEnd.TIMEOUT:
        return f"no result within {timeout_s:g} s"
    return f"the program ended before it returned ({end}, status {returncode})"


def _scored(said: Mapping[str, object], gold: ProgramGold) -> Scored:
    passed, why = said.get("passed"), said.get("why")
    if not isinstance(passed, bool):
        raise BrokenTests(f"the tests of {gold.entry_point} cannot be run twice alike: {said.get('error')}")
    return Scored(1.0 if passed else 0.0, str(why))


def _tests(gold: ProgramGold) -> dict[str, object]:
    return {"prompt": gold.prompt, "test": gold.test, "entry_point": gold.entry_point}


def _objects(output: bytes, kind: type[KindT]) -> list[KindT]:
    """Lines of the output that are JSON of that kind; whatever else was written is nobody's word."""
    found: list[KindT] = []
    for line in output.decode(errors="replace").split("\n"):
        if line[:1] in ("[", "{"):
            try:
                value: object = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, kind):
                found.append(value)
    return found


def _command(mode: str) -> list[str]:
    return ["python3", "-P", "-s", "-S", "-B", "-c", _guest(), mode]


@cache
def _guest() -> str:
    return Path(__file__).with_name("guest.py").read_text(encoding="utf-8")
