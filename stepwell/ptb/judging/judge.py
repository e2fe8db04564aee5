"""What a judge is, and how it is asked until what it says can be read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from stepwell.events.canonical import digest_of_json
from stepwell.ptb.item import Message

ATTEMPTS = 3
"""Questions asked at most for one judgement, each under a seed of its own."""


class JudgeFailed(Exception):
    """A judge gave no answer, or none that can be read: the answer that it was to judge is not scored."""


@dataclass(frozen=True)
class Question:
    """What a judge is asked."""

    messages: tuple[Message, ...]
    seed: int

    @property
    def digest(self) -> str:
        """Of all that it says; what a recorded judgement is found by."""
        return digest_of_json([[[one.role, one.content] for one in self.messages], self.seed])


class Judge(Protocol):
    """A model that judges."""

    @property
    def version(self) -> str:
        """Model and settings: judgements of different versions are not comparable."""
        ...

    async def ask(self, question: Question) -> str:
        """What it says.

        Raises:
            JudgeFailed: it says nothing: why, and what to do.
        """
        ...


ReadT = TypeVar("ReadT")


async def ask_readably(
    judge: Judge, messages: tuple[Message, ...], read: Callable[[str], ReadT], *, seed: int
) -> ReadT:
    """Asks until an answer can be read; `read` raises ValueError at one that cannot.

    Raises:
        JudgeFailed: no attempt gave an answer that can be read.
    """
    failures: list[str] = []
    for attempt in range(ATTEMPTS):
        try:
            return read(await judge.ask(Question(messages, seed + attempt)))
        except (JudgeFailed, ValueError) as error:
            failures.append(str(error))
    raise JudgeFailed(f"{judge.version} gave no judgement in {ATTEMPTS} attempts; the last: {failures[-1]}")
