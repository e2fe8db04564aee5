"""One pass of a model over a benchmark: ask, answer, score."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stepwell.ptb.chat import ChatTemplate, render
from stepwell.ptb.item import Item
from stepwell.ptb.scorers import BenchmarkScore, Means, Scored, collect, score_answers
from stepwell.ptb.seeds import sample_seed


class Generator(Protocol):
    """A model under evaluation, by whatever engine."""

    async def generate(self, prompt: str, *, seed: int, max_tokens: int) -> str:
        """The text that the model continues the prompt with, without the prompt.

        Args:
            prompt: With all control tokens in it as text.
            seed: Of this one generation.
            max_tokens: Most tokens of it.
        """
        ...


@dataclass(frozen=True)
class Pass:
    """What came of one pass."""

    seed: int
    answers: tuple[str, ...]
    """One to each item, in order."""
    scored: tuple[Scored, ...]
    score: BenchmarkScore


def prompts_of(items: Sequence[Item], template: ChatTemplate) -> list[str]:
    """What the model continues, to each item."""
    return [render(template, item.messages, item.tools) for item in items]


async def evaluate(
    items: Sequence[Item], generator: Generator, template: ChatTemplate, means: Means, *, seed: int, max_tokens: int
) -> Pass:
    """Runs one pass. Each item's generation has a seed of its own.

    Args:
        items: Of one benchmark.
        generator: Answers; how many requests are under way at once is its own affair.
        template: Of the trial's base model.
        means: What scoring needs.
        seed: Of the pass.
        max_tokens: Of one answer.

    Raises:
        Exception: whatever the generator raises: an evaluation that broke off has no score.
    """

    asked = zip(items, prompts_of(items, template), strict=True)
    answers = await asyncio.gather(
        *(generator.generate(prompt, seed=sample_seed(seed, item.id), max_tokens=max_tokens) for item, prompt in asked)
    )
    scored = await score_answers(items, answers, means, seed=seed)
    return Pass(seed, tuple(answers), tuple(scored), collect(scored))
