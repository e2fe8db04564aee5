"""Passes over a benchmark: their questions, their answers batch by batch, their scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from stepwell.ptb.benchmarks import Benchmark, BrokenRows
from stepwell.ptb.chat import ChatTemplate
from stepwell.ptb.evaluate import prompts_of
from stepwell.ptb.evaluation.inside_process import InsideProcess
from stepwell.ptb.evaluation.order import EvaluationOrder
from stepwell.ptb.evaluation.result import Answer, ItemOutcome, PassResult
from stepwell.ptb.evaluation.wire import Question
from stepwell.ptb.evaluation.work_folder import WorkFolder
from stepwell.ptb.item import Item
from stepwell.ptb.scorers import Means, collect, score_answers
from stepwell.ptb.seeds import sample_seed


@dataclass(frozen=True)
class Progress:
    """How far an evaluation is."""

    answered: int
    """Questions of all passes, under the limit of tokens that is tried."""
    of: int
    tokens: int
    """Of the batch that is under way."""


@dataclass(frozen=True)
class Pass:
    """One pass, before it is answered."""

    seed: int
    items: tuple[Item, ...]
    prompts: tuple[str, ...]

    def questions(self, max_tokens: int) -> list[Question]:
        """One to each item."""
        return [
            Question(prompt=prompt, seed=sample_seed(self.seed, item.id), max_tokens=max_tokens)
            for item, prompt in zip(self.items, self.prompts, strict=True)
        ]


def passes_of(order: EvaluationOrder, declared: Benchmark, template: ChatTemplate) -> list[Pass]:
    """The passes of an order.

    Raises:
        BrokenRows: a file is missing or does not hold what its publisher documents, or has fewer rows than wanted.
    """
    made: list[Pass] = []
    for seed in order.seeds:
        items = declared.load(order.files, seed, whole=order.rows is None)
        if order.rows is not None and len(items) < order.rows:
            raise BrokenRows(f"{order.benchmark} has {len(items)} rows in its file, and {order.rows} are wanted")
        chosen = tuple(items[: order.rows])
        made.append(Pass(seed, chosen, tuple(prompts_of(chosen, template))))
    return made


def end_of_turn(template: ChatTemplate) -> str:
    """How a template ends a message, without the blanks around it."""
    return template.message.partition("{content}")[2].strip()


class Answering:
    """Answers of all passes under one limit of tokens: those that are kept, and those that are still to be given.

    Args:
        passes: All of the order.
        work: Keeps the answers.
        max_tokens: The limit.
        at_once: Questions of a batch.
    """

    def __init__(self, passes: Sequence[Pass], work: WorkFolder, max_tokens: int, at_once: int) -> None:
        self._work = work
        self.max_tokens = max_tokens
        self._batches = [
            (one.seed, number, questions[start : start + at_once])
            for one in passes
            for questions in [one.questions(max_tokens)]
            for number, start in enumerate(range(0, len(questions), at_once))
        ]

    @property
    def missing(self) -> bool:
        """Whether some are still to be given."""
        return any(self._work.answers(self.max_tokens, seed, number) is None for seed, number, _ in self._batches)

    async def fill(self, process: InsideProcess, progress: Callable[[Progress], None]) -> None:
        """Gets and keeps those that are missing. Raises as `InsideProcess.ask`."""
        of = sum(len(questions) for _, _, questions in self._batches)
        answered = 0
        for seed, number, questions in self._batches:
            if self._work.answers(self.max_tokens, seed, number) is None:
                process.beat = partial(_told, progress, answered, of)
                answers = await process.ask(questions)
                self._work.keep_answers(self.max_tokens, seed, number, answers)
            answered += len(questions)
            progress(Progress(answered, of, 0))

    def of_pass(self, seed: int) -> list[Answer]:
        """All answers of a pass, in order."""
        kept = [self._work.answers(self.max_tokens, seed, number) for of, number, _ in self._batches if of == seed]
        return [answer for batch in kept if batch is not None for answer in batch]


def _told(progress: Callable[[Progress], None], answered: int, of: int, tokens: int) -> None:
    progress(Progress(answered, of, tokens))


async def score_pass(one: Pass, answers: Sequence[Answer], means: Means) -> PassResult:
    """Scores the answers of a pass. Raises as `score_answers`."""
    scored = await score_answers(one.items, [answer.text for answer in answers], means, seed=one.seed)
    score = collect(scored)
    return PassResult(
        seed=one.seed,
        points=None if score.value is None else 100 * score.value,
        low=100 * score.low,
        high=100 * score.high,
        unscored=score.unscored,
        disagreeing=score.disagreeing,
        items=tuple(
            ItemOutcome(
                item=item.id,
                seed=sample_seed(one.seed, item.id),
                answer=answer,
                value=worth.value,
                why=worth.why,
                weight=worth.weight,
                orders_agree=worth.orders_agree,
            )
            for item, answer, worth in zip(one.items, answers, scored, strict=True)
        ),
    )
