"""A database is made, recognised and described; and what the disk refuses is said clearly."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, text

from db.database import Database, driver_url
from db.errors import DatabaseUnavailable, DiskFull, NewerDatabase, OldDatabase, RestoredDatabase
from db.ledger import Ledger
from db.migrate import check, upgrade
from db.projections.tables import RunRow
from db.recorded import START
from stepwell.events import AttemptOpened
from tests.stack.database import DatabaseUrls


@pytest.fixture
def form(database: DatabaseUrls) -> Iterator[psycopg.Connection]:
    """Changes the recorded form of the database; puts it back."""
    with psycopg.connect(database.migrator, autocommit=True) as connection:
        (before,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        yield connection
        connection.execute("DELETE FROM alembic_version")
        connection.execute("INSERT INTO alembic_version VALUES (%s)", [before])


@pytest.mark.filterwarnings("ignore:Did not recognize type .xid8.")
def test_the_tables_are_those_of_the_models(database: DatabaseUrls) -> None:
    engine = create_engine(driver_url(database.migrator))
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), RunRow.metadata)
    engine.dispose()
    assert differences == []


def test_a_current_database_is_accepted_and_migrated_again_without_effect(database: DatabaseUrls) -> None:
    check(database.auditor)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(upgrade, [database.migrator] * 3))
    check(database.auditor)


def test_an_older_database_is_refused_with_what_to_do(database: DatabaseUrls, form: psycopg.Connection) -> None:
    form.execute("UPDATE alembic_version SET version_num = '0001'")
    with pytest.raises(OldDatabase, match=r"has form 0001.*python -m db\.migrate"):
        check(database.appender)


def test_an_empty_database_is_refused_with_what_to_do(database: DatabaseUrls, form: psycopg.Connection) -> None:
    form.execute("DELETE FROM alembic_version")
    with pytest.raises(OldDatabase, match="has form none"):
        check(database.appender)


def test_a_newer_database_is_neither_used_nor_migrated(database: DatabaseUrls, form: psycopg.Connection) -> None:
    form.execute("UPDATE alembic_version SET version_num = '9999'")
    for refused in (check, upgrade):
        with pytest.raises(NewerDatabase, match=r"form 9999.*upgrade Stepwell"):
            refused(database.migrator)


async def test_a_database_restored_on_another_server_is_put_in_its_order(
    database: DatabaseUrls, ledger: Ledger, fresh
) -> None:
    streams = [f"rollout/{fresh()}/0/0/{sample}" for sample in range(2)]
    event = AttemptOpened(attempt="a", worker="w", resumed_at=0)
    for stream in streams:
        await ledger.append(stream, [event], expected_seq=0, actor="sandbox:s")
    with psycopg.connect(database.migrator) as owner:
        owner.execute("ALTER TABLE events DISABLE TRIGGER events_stand")
        owner.execute("UPDATE events SET xid = '9223372036854775807' WHERE stream = ANY(%s)", [streams])
        owner.execute("ALTER TABLE events ENABLE TRIGGER events_stand")
    with pytest.raises(RestoredDatabase, match="restored from another server"):
        check(database.appender)
    upgrade(database.migrator)
    check(database.appender)
    for stream in streams:
        page = await ledger.read_after(START, stream)
        assert [each.event for each in page.events] == [event]


def test_a_password_is_not_shown(database: DatabaseUrls, unused_tcp_port: int) -> None:
    with pytest.raises(DatabaseUnavailable, match="no connection") as error:
        check(f"postgresql://someone:hunter2@127.0.0.1:{unused_tcp_port}/nothing")
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("url", ["mysql://a@b/c", "sqlite:///x"])
def test_another_kind_of_database_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="wanted postgresql://"):
        Database(url)


async def test_a_full_disk_is_one_clear_error(connections: Database) -> None:
    refuse = text("DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$")
    with pytest.raises(DiskFull, match="free space"):
        await connections.rows(refuse, {})
