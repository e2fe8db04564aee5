"""Rollouts of several rows of tokens: each generated token is in one, and the batch has what is recorded."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from stepwell.audit.verification import verify
from stepwell.events import RolloutEnded, RowsRecorded, StepAdmitted, TurnRecorded
from stepwell.events.base import Event
from stepwell.events.canonical import canonical_json
from stepwell.events.rows_recorded import RecordedRow
from tests.audited_run import write_run
from tests.book import Lie, MemoryBook, Told, both, dropped, failing
from tests.run_plan import PROMPTS, SAMPLES, STEPS, Plan

WHERE = "rollout/r/0/0/0"
IN_ROWS = Plan(rows=2)


def rows(**changes: Any) -> Lie:
    """Changes the second row of one rollout."""

    def lie(stream: str, event: Event) -> Event:
        if not isinstance(event, RowsRecorded) or stream != WHERE:
            return event
        first, second = event.rows
        return event.model_copy(update={"rows": (first, second.model_copy(update=changes))})

    return lie


def with_a_third(stream: str, event: Event) -> Event:
    """Lists a turn of one rollout in a row of its own once more."""
    if not isinstance(event, RowsRecorded) or stream != WHERE:
        return event
    again = RecordedRow(turns=(1,), tokens=15, generated_tokens=5, content="another")
    return event.model_copy(update={"rows": (*event.rows, again)})


async def test_a_run_of_several_rows_holds_and_each_counts_once() -> None:
    book = MemoryBook()
    await write_run(book, "r", IN_ROWS)
    found = verify(book.record("r"))
    assert failing(found) == {}
    # Two validations of two prompts; of each step's second prompt the last rollout fails.
    ended = (STEPS * PROMPTS + 2 * 2) * SAMPLES - STEPS
    assert next(result.checked for result in found.results if result.rule == "rows") == 2 * ended
    trained = json.loads(book.blobs[book.first("run/r", StepAdmitted).manifest])
    assert sorted(row for batch in trained["micro_batches"] for row in batch["samples"]) == list(range(2 * 5))
    assert [len(sample.get("rows", ())) for sample in trained["samples"]] == [2] * 5 + [0]


async def test_a_rollout_that_lists_no_rows_is_one() -> None:
    book = MemoryBook()
    await write_run(book, "r")
    assert failing(verify(book.record("r"))) == {}
    assert b'"rows"' not in book.blobs[book.first("run/r", StepAdmitted).manifest]


async def test_a_record_from_before_rows_were_listed_holds_and_was_not_trained() -> None:
    book = MemoryBook(lie=both(dropped(RowsRecorded), Told(RolloutEnded, {"content": ""})))
    await write_run(book, "r", IN_ROWS)
    assert failing(verify(book.record("r"))) == {}
    trained = json.loads(book.blobs[book.first("run/r", StepAdmitted).manifest])
    assert [sample["mask"] for sample in trained["samples"]] == ["rows"] * 5 + ["infra"]
    assert trained["micro_batches"] == []


LIES: list[tuple[str, Lie, str]] = [
    ("a turn in no row", rows(turns=()), "turn 1 is in 0 rows, wanted each recorded turn in one"),
    ("a turn in two rows", with_a_third, "turn 1 is in 2 rows, wanted each recorded turn in one"),
    ("a turn that was never generated", rows(turns=(1, 2)), "no turn 2 is recorded"),
    ("tokens that no turn generated", rows(generated_tokens=6), "(tokens, generated) (15, 6), its turns make (15, 5)"),
    ("a longer row than its turns make", rows(tokens=16), "(tokens, generated) (16, 5), its turns make (15, 5)"),
    ("another content", rows(content="another"), "its rows make (tokens, generated, content) (30, 10, '"),
    ("the rows of an epoch that is void", Told(RowsRecorded, {"epoch": 1}, where=WHERE), "ended in epoch 0"),
    ("rows of a rollout that did not end", dropped(RolloutEnded, WHERE), "rows of epoch 0, but it did not end"),
    (
        "several rows that are said to be one",
        dropped(RowsRecorded, WHERE),
        "row 0 holds 15 tokens before turn 1, whose prompt has 10",
    ),
    (
        "a turn of another length",
        Told(TurnRecorded, {"prompt_tokens": 9}, where=WHERE, key="turn/0/1"),
        "(tokens, generated) (15, 5), its turns make (14, 5)",
    ),
]


@pytest.mark.parametrize(("lie", "part"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
async def test_a_lie_about_rows_is_found(lie: Lie, part: str) -> None:
    book = MemoryBook()
    await write_run(book, "r", IN_ROWS)
    # Told afterwards: of rows that contradict their rollout's end no batch can be made.
    book.events[WHERE] = [told for event in book.events[WHERE] if (told := lie(WHERE, event)) is not None]
    found = {result.rule: [str(each) for each in result.findings] for result in verify(book.record("r")).results}
    assert any(part in finding for finding in found["rows"]), found


def without_a_row(batch: dict[str, Any]) -> None:
    del batch["samples"][0]["rows"]


def with_a_token_twice(batch: dict[str, Any]) -> None:
    batch["micro_batches"][0]["samples"].append(0)


@pytest.mark.parametrize(
    ("change", "part"),
    [(without_a_row, "rows of rollout/r/0/0/0 is ()"), (with_a_token_twice, "micro_batches is")],
)
async def test_a_batch_of_other_rows_is_found(change: Callable[[dict[str, Any]], None], part: str) -> None:
    book = MemoryBook()
    await write_run(book, "r", IN_ROWS)
    admitted = book.first("run/r", StepAdmitted)
    batch = json.loads(book.blobs[admitted.manifest])
    change(batch)
    book.blobs[admitted.manifest] = canonical_json(batch)
    found = failing(verify(book.record("r")))
    assert list(found) == ["batches"]
    assert part in found["batches"]
