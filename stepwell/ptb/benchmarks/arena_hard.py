"""Arena-Hard v2.0, its 250 prompts for creative writing: answers judged against a baseline's."""

from collections.abc import Mapping
from pathlib import Path

from stepwell.ptb.benchmarks.rows import BrokenRows, Row, read_rows
from stepwell.ptb.item import Item, Message, PairGold


def load_arena_hard(files: Mapping[str, Path], seed: int) -> list[Item]:
    """`test`: rows of `uid` and `prompt`; `baseline`: rows of `uid` and `messages`, the last of which holds the answer.
    As lmarena-ai/arena-hard-auto publishes them; the baseline of the published leaderboard is Qwen3-1.7B."""
    del seed
    answers = {row.text("uid"): _answer(row) for row in read_rows(files["baseline"])}
    items: list[Item] = []
    for row in read_rows(files["test"]):
        uid = row.text("uid")
        if uid not in answers:
            raise BrokenRows(f"{row.where}: {files['baseline']} has no answer to {uid}: take both files of one version")
        items.append(Item(f"arena/{uid}", (Message("user", row.text("prompt")),), PairGold(answers[uid])))
    return items


def _answer(row: Row) -> str:
    messages = row.rows("messages")
    if not messages or messages[-1].role() != "assistant":
        raise row.wrong("the last message is not the assistant's")
    return messages[-1].row("content").text("answer")
