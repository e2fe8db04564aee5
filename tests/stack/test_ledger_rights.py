"""What the database itself refuses, whoever asks."""

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.events import AttemptOpened
from tests.stack.database import DatabaseUrls

CHANGES = [
    "UPDATE events SET hash = 'x' WHERE stream = 'test/none'",
    "DELETE FROM events WHERE stream = 'test/none'",
    "TRUNCATE events",
    "UPDATE blobs SET data = '' WHERE digest = 'none'",
]


@pytest.mark.parametrize("statement", [*CHANGES, "DELETE FROM blobs", "TRUNCATE blobs", "DROP TABLE events"])
@pytest.mark.parametrize("role", ["appender", "projector", "auditor"])
def test_no_worker_changes_or_deletes_facts(database: DatabaseUrls, role: str, statement: str) -> None:
    with psycopg.connect(getattr(database, role)) as connection, pytest.raises(InsufficientPrivilege):
        connection.execute(statement)


@pytest.mark.parametrize("statement", CHANGES)
def test_not_even_the_owner_of_the_tables_changes_facts(database: DatabaseUrls, statement: str) -> None:
    with (
        psycopg.connect(database.migrator) as connection,
        pytest.raises(InsufficientPrivilege, match="appended, never changed"),
    ):
        connection.execute(statement)


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("auditor", "INSERT INTO blobs (digest, size_bytes, place) VALUES ('x', 1, 's3')"),
        ("auditor", "UPDATE engine_leases SET url = 'x'"),
        ("auditor", "DELETE FROM runs"),
        ("auditor", "SELECT secret FROM engine_leases"),
        ("projector", "SELECT * FROM engine_leases"),
        ("auditor", "SELECT token FROM worker_leases"),
        ("auditor", "UPDATE worker_leases SET host = 'x'"),
        ("projector", "INSERT INTO blobs (digest, size_bytes, place) VALUES ('x', 1, 's3')"),
        ("projector", "SELECT append_events('test/a', 0, '{k}', '{T}', '{a}', '{b}', '{c}', '{}', '{}', 'run')"),
        ("appender", "INSERT INTO runs (run) VALUES ('x')"),
        ("appender", "TRUNCATE rollouts"),
        ("appender", "DELETE FROM engine_leases"),
        ("appender", "DELETE FROM worker_leases"),
        ("appender", "ALTER TABLE events DISABLE TRIGGER events_stand"),
        ("appender", "CREATE TABLE mine (a int)"),
    ],
)
def test_each_role_has_its_rights_and_no_others(database: DatabaseUrls, role: str, statement: str) -> None:
    with psycopg.connect(getattr(database, role)) as connection, pytest.raises(InsufficientPrivilege):
        connection.execute(statement)


def test_an_auditor_sees_which_engines_are_live(database: DatabaseUrls) -> None:
    with psycopg.connect(database.auditor) as connection:
        assert connection.execute("SELECT engine_id, run, url, expires_at FROM engine_leases LIMIT 0").fetchall() == []


async def test_an_auditor_reads_what_an_appender_wrote(
    database: DatabaseUrls, ledger: Ledger, blobs: BlobStore, fresh
) -> None:
    stream = f"rollout/{fresh()}/0/0/0"
    event = AttemptOpened(attempt="a", worker="w", resumed_at=0)
    await ledger.append(stream, [event], expected_seq=0, actor="sandbox:s", blobs=[b"kept beside it"])
    with psycopg.connect(database.auditor) as connection:
        rows = connection.execute("SELECT type, key FROM events WHERE stream = %s", [stream]).fetchall()
    assert rows == [("AttemptOpened", "attempt/a")]
