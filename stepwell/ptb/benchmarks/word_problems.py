"""AIME 2025 and GSM8K: problems whose answer is a number."""

import random
from collections.abc import Mapping
from pathlib import Path

from stepwell.ptb.benchmarks.rows import Row, read_rows
from stepwell.ptb.item import Item, Message, NumberGold
from stepwell.ptb.scorers.numbers import number_of

SHOTS = 10
SHOTS_SEED = 42
"""The worked examples are the same for every item, model and agent."""

_TASK = (
    "Solve the problem step by step. Write your result on a last line of the form\n"
    "ANSWER: <number>\n"
    "with nothing after the number.\n\n{problem}"
)


def load_aime(files: Mapping[str, Path], seed: int) -> list[Item]:
    """`test`: rows of `id`, `problem` and `answer` (a number or its text), as math-ai/aime25 publishes them."""
    del seed
    return [
        Item(
            f"aime2025/{row.value('id')}",
            (Message("user", _TASK.format(problem=row.text("problem"))),),
            _gold(row, row.value("answer")),
        )
        for row in read_rows(files["test"])
    ]


def load_gsm8k(files: Mapping[str, Path], seed: int) -> list[Item]:
    """`test` and `train`: rows of `question` and `answer`, whose last line is `#### number`, as
    openai/grade-school-math publishes them. Ten worked examples out of `train` stand in the system message."""
    del seed
    train = read_rows(files["train"])
    shots = random.Random(SHOTS_SEED).sample(train, min(SHOTS, len(train)))
    system = Message("system", "\n\n".join(_worked(row) for row in shots))
    items: list[Item] = []
    for number, row in enumerate(read_rows(files["test"])):
        ask = Message("user", _TASK.format(problem=row.text("question")))
        items.append(Item(f"gsm8k/{number}", (system, ask), _gold(row, _result(row))))
    return items


def _gold(row: Row, answer: object) -> NumberGold:
    value = number_of(str(answer))
    if value is None:
        raise row.wrong(f"the answer {answer!r} is no number")
    return NumberGold(value)


def _result(row: Row) -> str:
    _, mark, result = row.text("answer").rpartition("\n#### ")
    if not mark:
        raise row.wrong("the answer has no last line `#### number`")
    return result


def _worked(row: Row) -> str:
    steps = row.text("answer").rpartition("\n#### ")[0]
    return f"{row.text('question')}\n\n{steps}\n\nANSWER: {_result(row)}"
