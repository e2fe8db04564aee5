"""HumanEval: functions to be written from their signature and docstring."""

from collections.abc import Mapping
from pathlib import Path

from stepwell.ptb.benchmarks.rows import Row, read_rows
from stepwell.ptb.item import Item, Message, ProgramGold

_TASK = (
    "Write the whole function, with its signature and the imports that it needs, in one Python code block. "
    "Write nothing into the block that is not needed to run it.\n\n```python\n{prompt}```"
)


def load_humaneval(files: Mapping[str, Path], seed: int) -> list[Item]:
    """`test`: rows of `task_id`, `prompt`, `canonical_solution`, `test` and `entry_point`, as openai/human-eval
    publishes them."""
    del seed
    return [_item(row) for row in read_rows(files["test"])]


def _item(row: Row) -> Item:
    prompt = row.text("prompt")
    gold = ProgramGold(prompt, row.text("canonical_solution"), row.text("test"), row.text("entry_point"))
    return Item(row.text("task_id"), (Message("user", _TASK.format(prompt=prompt)),), gold)
