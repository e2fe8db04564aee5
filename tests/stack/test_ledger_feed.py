"""Reading all streams in one order that misses nothing."""

import psycopg

from db.ledger import Ledger
from db.recorded import START, Position, Recorded
from stepwell.events import AttemptOpened
from stepwell.events.envelope import draft
from tests.stack.database import DatabaseUrls


def opened(attempt: str) -> AttemptOpened:
    return AttemptOpened(attempt=attempt, worker="w", resumed_at=0)


def insert(connection: psycopg.Connection, stream: str, event: AttemptOpened) -> None:
    """The append's own statement, in a transaction that the caller ends."""
    head, middle, tail = draft(
        stream=stream, seq=0, key=event.key(), type=event.type, schema=1, actor="sandbox:s", body=event.body()
    )
    connection.execute(
        "SELECT append_events(%s, 0, %s, %s, %s, %s, %s, '{}', '{}', 'run')",
        [stream, [event.key()], [event.type], [head], [middle], [tail]],
    )


async def read_all(ledger: Ledger, position: Position, prefix: str, limit: int) -> list[Recorded]:
    events: list[Recorded] = []
    while True:
        page = await ledger.read_after(position, prefix, limit)
        events += page.events
        if len(page.events) < limit:
            return events
        position = page.position


async def test_a_commit_that_came_late_is_not_missed(database: DatabaseUrls, ledger: Ledger, fresh) -> None:
    prefix = f"rollout/{fresh()}/"
    with psycopg.connect(database.appender) as slow:
        insert(slow, f"{prefix}0/0/0", opened("slow"))
        await ledger.append(f"{prefix}0/0/1", [opened("quick")], expected_seq=0, actor="sandbox:s")
        early = await ledger.read_after(START, prefix)
        slow.commit()
    late = await ledger.read_after(early.position, prefix)
    assert early.events == []
    assert [each.event for each in late.events] == [opened("slow"), opened("quick")]


async def test_an_append_that_was_rolled_back_leaves_no_hole(database: DatabaseUrls, ledger: Ledger, fresh) -> None:
    prefix = f"rollout/{fresh()}/"
    with psycopg.connect(database.appender) as failed:
        insert(failed, f"{prefix}0/0/0", opened("failed"))
        failed.rollback()
    await ledger.append(f"{prefix}0/0/0", [opened("good")], expected_seq=0, actor="sandbox:s")
    page = await ledger.read_after(START, prefix)
    assert [each.event for each in page.events] == [opened("good")]


async def test_pages_of_any_size_give_the_same_order(ledger: Ledger, fresh) -> None:
    prefix = f"rollout/{fresh()}/"
    for seq in range(3):
        for sample in (1, 0):
            events = [opened(f"{seq}a"), opened(f"{seq}b")]
            await ledger.append(f"{prefix}0/0/{sample}", events, expected_seq=2 * seq, actor="sandbox:s")
    whole = await read_all(ledger, START, prefix, 1000)
    assert len(whole) == 12
    for stream in {each.stream for each in whole}:
        assert [each.seq for each in whole if each.stream == stream] == list(range(6))
    for limit in (1, 2, 5, 12):
        assert await read_all(ledger, START, prefix, limit) == whole


async def test_a_reader_that_is_up_to_date_gets_what_is_new(ledger: Ledger, fresh) -> None:
    prefix = f"rollout/{fresh()}/"
    await ledger.append(f"{prefix}0/0/0", [opened("a")], expected_seq=0, actor="sandbox:s")
    first = await ledger.read_after(START, prefix)
    nothing = await ledger.read_after(first.position, prefix)
    await ledger.append(f"{prefix}0/0/0", [opened("b")], expected_seq=1, actor="sandbox:s")
    second = await ledger.read_after(nothing.position, prefix)
    assert [len(page.events) for page in (first, nothing, second)] == [1, 0, 1]
    assert first.position <= nothing.position < second.position
