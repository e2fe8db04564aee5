"""What somebody with all rights does to a database is found by `read_run` and the rules: every kind, in real tables."""

import psycopg
import pytest

from db.blobs import BlobStore
from db.database import Database
from db.run_record import read_run
from stepwell.audit.verification import verify
from stepwell.events.envelope import open_envelope
from tests.audited_run import write_run
from tests.book import MemoryBook
from tests.run_plan import Plan
from tests.stack.database import DatabaseUrls
from tests.tamper_kinds import KINDS, Tamper
from tests.tampered import Copy, Found

NOBODY = Tamper("nobody touched it", lambda _: None, ("", None), frozenset())


def write(held: Copy, database: DatabaseUrls) -> list[str]:
    """Writes a copy into the tables, as their owner: chains that do not fit too.

    Returns:
        Digests of the blobs that were not there: the runs of other tests may have some of the same.
    """
    new: list[str] = []
    with psycopg.connect(database.migrator) as owner:
        for stream, lines in held.streams.items():
            keys: set[str] = set()
            for seq, (hash, exact) in enumerate(lines):
                try:
                    envelope = open_envelope(exact)
                    key, type = envelope.key, envelope.type
                except ValueError:
                    key, type = "unreadable", "unreadable"
                row = (stream, seq, key if key not in keys else f"{key} again", type, hash, exact)
                keys.add(key)
                owner.execute(
                    "INSERT INTO events (stream, seq, key, type, hash, exact) VALUES (%s,%s,%s,%s,%s,%s)", row
                )
        for digest, data in held.blobs.items():
            row = (digest, len(data), data)
            done = owner.execute(
                "INSERT INTO blobs (digest, size_bytes, place, data) VALUES (%s, %s, 'postgres', %s) "
                "ON CONFLICT DO NOTHING",
                row,
            )
            new += [digest] * done.rowcount
    return new


def clear(held: Copy, new: list[str], database: DatabaseUrls) -> None:
    """Takes it out again."""
    with psycopg.connect(database.migrator) as owner:
        owner.execute("ALTER TABLE events DISABLE TRIGGER events_stand")
        owner.execute("DELETE FROM events WHERE stream = ANY(%s)", [list(held.streams)])
        owner.execute("DELETE FROM blobs WHERE digest = ANY(%s)", [new])
        owner.execute("ALTER TABLE events ENABLE TRIGGER events_stand")


@pytest.mark.long
@pytest.mark.parametrize("kind", [NOBODY, *KINDS], ids=lambda kind: kind.name)
async def test_a_changed_database_is_found_out(
    kind: Tamper, database: DatabaseUrls, connections: Database, blobs: BlobStore
) -> None:
    book = MemoryBook()
    await write_run(book, "r", Plan())
    held = Copy.of(book)
    kind.how(held)
    new = write(held, database)
    try:
        record = await read_run(connections, blobs, "r")
        assert record is not None
        results = verify(record).results
    finally:
        clear(held, new, database)
    found: Found = {(result.rule, finding.stream, finding.seq) for result in results for finding in result.findings}
    if kind is NOBODY:
        assert found == set()
    else:
        assert any((stream, seq) == kind.place and rule in kind.rules for rule, stream, seq in found), found
