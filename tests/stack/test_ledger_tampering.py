"""A stored stream that somebody with all rights changed does not verify. Every change is rolled back."""

import json
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from db.errors import BrokenStream
from db.ledger import Ledger
from db.verify import verify_rows
from stepwell.events import AttemptOpened, RolloutFailed, parse
from stepwell.events.canonical import canonical_json
from stepwell.events.envelope import GENESIS, hash_of, seal
from tests.stack.database import DatabaseUrls


@pytest.fixture
async def stream(ledger: Ledger, fresh) -> str:
    """A stream of three events."""
    name = f"rollout/{fresh()}/0/0/0"
    for seq in range(2):
        event = AttemptOpened(attempt=f"a{seq}", worker="w", resumed_at=0)
        await ledger.append(name, [event], expected_seq=seq, actor="sandbox:s")
    await ledger.append(name, [RolloutFailed(failure="infra", cause="lost")], expected_seq=2, actor="sandbox:s")
    return name


@pytest.fixture
def owner(database: DatabaseUrls, stream: str) -> Iterator[psycopg.Connection]:
    """The owner of the tables with the triggers off, in a transaction that is never committed."""
    with psycopg.connect(database.migrator, row_factory=namedtuple_row) as connection:
        connection.execute("ALTER TABLE events DISABLE TRIGGER events_stand")
        yield connection
        connection.rollback()


def rows(owner: psycopg.Connection, stream: str) -> list:
    return owner.execute(
        "SELECT seq, key, type, hash, exact FROM events WHERE stream = %s ORDER BY seq", [stream]
    ).fetchall()


def test_an_untouched_stream_verifies(owner: psycopg.Connection, stream: str) -> None:
    stored = rows(owner, stream)
    assert verify_rows(stream, stored, parse) == (2, stored[2].hash)


@pytest.mark.parametrize(
    ("change", "at", "why"),
    [
        ("exact = set_byte(exact, 20, get_byte(exact, 20) # 1)", 1, "hash to"),
        ("hash = repeat('0', 64)", 1, "hash to"),
        ("key = 'attempt/other'", 0, "stored as"),
        ("type = 'TurnRecorded'", 0, "stored as"),
        ("seq = 7", 1, "missing"),
        ("seq = 7", 0, "missing"),
    ],
    ids=["a bit", "a hash", "a key", "a type", "a number", "the first number"],
)
def test_a_changed_row_is_found(owner: psycopg.Connection, stream: str, change: str, at: int, why: str) -> None:
    owner.execute(f"UPDATE events SET {change} WHERE stream = %s AND seq = %s", [stream, at])
    with pytest.raises(BrokenStream, match=why) as broken:
        verify_rows(stream, rows(owner, stream), parse)
    assert broken.value.seq == at


def test_two_rows_that_changed_places_are_found(owner: psycopg.Connection, stream: str) -> None:
    for seq, place in ((0, 9), (1, 0), (9, 1)):
        owner.execute("UPDATE events SET seq = %s WHERE stream = %s AND seq = %s", [place, stream, seq])
    with pytest.raises(BrokenStream, match=f"belong to {stream} #1"):
        verify_rows(stream, rows(owner, stream), parse)


def test_a_deleted_row_is_found(owner: psycopg.Connection, stream: str) -> None:
    owner.execute("DELETE FROM events WHERE stream = %s AND seq = 1", [stream])
    with pytest.raises(BrokenStream, match="missing") as broken:
        verify_rows(stream, rows(owner, stream), parse)
    assert broken.value.seq == 1


def test_a_deleted_end_changes_the_head_that_a_parent_committed_to(owner: psycopg.Connection, stream: str) -> None:
    committed = verify_rows(stream, rows(owner, stream), parse)
    owner.execute("DELETE FROM events WHERE stream = %s AND seq = 2", [stream])
    assert verify_rows(stream, rows(owner, stream), parse) != committed


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"body": {"attempt": "a0", "worker": "w"}}, "resumed_at"),
        ({"type": "Unheard"}, "unknown"),
        ({"schema": 99}, "schema 99"),
        ({"actor": "trainer:t"}, "may not append"),
        ({"key": "attempt/zero"}, "its body makes it"),
    ],
    ids=["body", "type", "schema", "actor", "key"],
)
def test_an_event_that_was_forged_with_its_right_hash_is_found(
    owner: psycopg.Connection, stream: str, fields: dict, why: str
) -> None:
    genuine = {
        "stream": stream,
        "seq": 0,
        "key": "attempt/a0",
        "type": "AttemptOpened",
        "schema": 1,
        "actor": "sandbox:s",
        "body": {"attempt": "a0", "worker": "w", "resumed_at": 0},
        "prev_hash": GENESIS,
        "time": "2026-01-31T23:59:59.000000Z",
    }
    forged = seal(**{**genuine, **fields})
    owner.execute(
        "UPDATE events SET exact = %s, hash = %s, key = %s, type = %s WHERE stream = %s AND seq = 0",
        [forged.exact_bytes(), forged.hash, forged.key, forged.type, stream],
    )
    with pytest.raises(BrokenStream, match=why) as broken:
        verify_rows(stream, rows(owner, stream), parse)
    assert broken.value.seq == 0


def test_the_database_hashes_as_we_do(owner: psycopg.Connection, stream: str) -> None:
    for row in rows(owner, stream):
        assert row.hash == hash_of(row.exact)
        assert canonical_json(json.loads(row.exact)) == row.exact
