"""One question of a benchmark, and what its answer is held against."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True)
class NumberGold:
    """The answer is this number, however it is written."""

    value: Fraction


@dataclass(frozen=True)
class ChoiceGold:
    """The answer is this letter."""

    letter: str
    letters: str
    """All that can be chosen, in order."""


@dataclass(frozen=True)
class CallGold:
    """The answer is exactly this call."""

    function: str
    arguments: tuple[tuple[str, object], ...]
    """Name and value, in the publisher's order, which does not matter."""
    integers: frozenset[str]
    """Arguments that the function's schema declares as integers."""


@dataclass(frozen=True)
class ProgramGold:
    """The answer is a function that passes these tests."""

    prompt: str
    """What is to be continued: imports, functions to use, the signature and docstring."""
    solution: str
    """The publisher's continuation."""
    test: str
    """Source that defines `check(candidate)`."""
    entry_point: str
    """Name of the function."""


@dataclass(frozen=True)
class Criterion:
    """One point of a rubric."""

    text: str
    points: float
    """Negative for what a good answer does not do."""


@dataclass(frozen=True)
class RubricGold:
    """The answer is judged point by point."""

    criteria: tuple[Criterion, ...]


@dataclass(frozen=True)
class PairGold:
    """The answer is judged against this one."""

    baseline: str


Gold = NumberGold | ChoiceGold | CallGold | ProgramGold | RubricGold | PairGold


@dataclass(frozen=True)
class Item:
    """One question."""

    id: str
    """Unique in its benchmark; the seed of its sample is drawn from it."""
    messages: tuple[Message, ...]
    """The conversation that the model continues."""
    gold: Gold
    tools: tuple[str, ...] = ()
    """Functions on offer, each as JSON text."""
