"""GPQA main: hard questions with four choices."""

import random
from collections.abc import Mapping
from pathlib import Path

from stepwell.ptb.benchmarks.rows import Row, read_rows
from stepwell.ptb.item import ChoiceGold, Item, Message
from stepwell.ptb.seeds import sample_seed

LETTERS = "ABCD"
_ORDER = 1
"""The sample's second call on its seeds: the first is its generation."""

_TASK = (
    "Answer the question. Think step by step, then write a last line of the form\n"
    "ANSWER: <letter>\n"
    "where the letter is one of {letters}.\n\n{question}\n\n{choices}"
)


def load_gpqa(files: Mapping[str, Path], seed: int) -> list[Item]:
    """`test`: rows of `Question`, `Correct Answer`, `Incorrect Answer 1` to `3` and `Record ID`, as Idavidrein/gpqa
    publishes them, in CSV or JSON lines. The order of the choices follows from the seed of the pass and the record."""
    return [_item(row, seed) for row in read_rows(files["test"])]


def _item(row: Row, seed: int) -> Item:
    correct = row.text("Correct Answer").strip()
    choices = [correct, *(row.text(f"Incorrect Answer {number}").strip() for number in (1, 2, 3))]
    identifier = f"gpqamain/{row.text('Record ID')}"
    random.Random(sample_seed(seed, identifier, call=_ORDER)).shuffle(choices)
    if choices.count(correct) != 1:
        raise row.wrong(f"the correct answer {correct!r} is also among the incorrect ones")
    lines = "\n".join(f"{letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=True))
    asked = _TASK.format(letters=", ".join(LETTERS), question=row.text("Question").strip(), choices=lines)
    return Item(identifier, (Message("user", asked),), ChoiceGold(LETTERS[choices.index(correct)], LETTERS))
