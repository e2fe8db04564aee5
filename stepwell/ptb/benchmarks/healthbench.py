"""HealthBench, the 245 conversations of the published subset: answers judged point by point."""

from collections.abc import Mapping
from pathlib import Path

from stepwell.ptb.benchmarks.rows import Row, read_rows
from stepwell.ptb.item import Criterion, Item, Message, RubricGold


def load_healthbench(files: Mapping[str, Path], seed: int) -> list[Item]:
    """`test`: rows of `prompt_id`, `prompt` (messages) and `rubrics` (`criterion`, `points`), as openai/healthbench
    publishes them. The canary of a row stays in the file and reaches no prompt."""
    del seed
    return [_item(row) for row in read_rows(files["test"])]


def _item(row: Row) -> Item:
    criteria = tuple(Criterion(one.text("criterion"), one.number("points")) for one in row.rows("rubrics"))
    if not any(criterion.points > 0 for criterion in criteria):
        raise row.wrong("no criterion has positive points, so that nothing could be reached")
    messages = tuple(Message(one.role(), one.text("content")) for one in row.rows("prompt"))
    return Item(row.text("prompt_id"), messages, RubricGold(criteria))
