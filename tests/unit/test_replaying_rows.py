"""A rollout's row is computed from the turns that count: of the epoch that ended, in one row or in several."""

import pytest

from stepwell.agent.protocol import Action
from stepwell.agent.turn import TurnPayload
from stepwell.audit.replaying.rows import payloads_of, row_differences
from stepwell.audit.replaying.step_record import GroupRecord, RolloutRecord, StreamRead
from stepwell.events import RolloutEnded, RolloutRestarted, TurnRecorded
from stepwell.events.base import Event
from stepwell.rl.rows import train_rows
from tests.book import MemoryBook
from tests.told import DIGEST, told

STREAM = "rollout/r/0/0/0"


def payload(number: int, segment: int = 0) -> TurnPayload:
    return TurnPayload(
        delta_ids=tuple(range(number, number + 4)),
        token_ids=(1, 2, 3),
        logprobs=(-0.1, -0.2, -0.3),
        finish_reason="stop",
        action=Action(tool="view", arguments={}),
        observation="",
        finished=False,
        segment=segment,
    )


async def group_of(book: MemoryBook, *epochs: list[TurnPayload], **changes: object) -> GroupRecord:
    """A rollout that was started over between the epochs; its end says what the last of them make, but for changes."""
    events: list[Event] = []
    for epoch, turns in enumerate(epochs):
        if epoch:
            events.append(RolloutRestarted(epoch=epoch, turn=0, expected=DIGEST, found=DIGEST))
        for number, turn in enumerate(turns):
            blob = await book.put(turn.blob())
            events.append(told(TurnRecorded, turn=number, epoch=epoch, payload=blob, generated_tokens=3))
    rows = train_rows(epochs[-1])
    said = {
        "epoch": len(epochs) - 1,
        "turns": len(epochs[-1]),
        "generated_tokens": 3 * len(epochs[-1]),
        "total_tokens": 7 * len(epochs[-1]),
        "content": rows[0].content_digest() if len(rows) == 1 else "",
    }
    events.append(told(RolloutEnded, **{**said, **changes}))
    rollout = RolloutRecord.of(STREAM, StreamRead(events, DIGEST))
    return GroupRecord(0, "prompt/r/0/0", None, None, None, (rollout,))


async def test_a_row_of_several_turns_is_the_recorded_one() -> None:
    book = MemoryBook()
    group = await group_of(book, [payload(1), payload(20), payload(40)])
    assert list(row_differences(0, group, book.blobs)) == []


async def test_turns_of_an_epoch_that_was_given_up_do_not_count() -> None:
    book = MemoryBook()
    group = await group_of(book, [payload(1), payload(20)], [payload(60)])
    assert payloads_of(group) == {group.rollouts[0].turns[0].payload}
    assert list(row_differences(0, group, book.blobs)) == []


async def test_turns_of_several_rows_have_no_content() -> None:
    book = MemoryBook()
    group = await group_of(book, [payload(1), payload(20, segment=1)])
    assert list(row_differences(0, group, book.blobs)) == []


@pytest.mark.parametrize(
    ("field", "value"), [("turns", 3), ("generated_tokens", 7), ("total_tokens", 15), ("content", "f" * 64)]
)
async def test_what_the_end_says_otherwise_is_located(field: str, value: object) -> None:
    book = MemoryBook()
    group = await group_of(book, [payload(1), payload(20)], **{field: value})
    found = list(row_differences(4, group, book.blobs))
    assert [(each.step, each.prompt, each.rollout, each.field) for each in found] == [(4, 0, STREAM, field)]
    assert found[0].recorded == str(value)


async def test_a_turn_that_cannot_be_read_is_named() -> None:
    book = MemoryBook()
    group = await group_of(book, [payload(1)])
    book.blobs[group.rollouts[0].turns[0].payload] = b"{}"
    (found,) = row_differences(0, group, book.blobs)
    assert found.computed.startswith("unknown: turn 0 cannot be read")
