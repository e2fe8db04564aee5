"""Brings a database to this Stepwell's form, and tells whether one is.

`python -m db.migrate postgresql://…` migrates an external database, with a role that may create tables in it.
"""

import sys
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text

from db.database import clear_errors, driver_url, shown
from db.errors import NewerDatabase, OldDatabase, RestoredDatabase
from db.projections.tables import PROJECTIONS
from db.roles import grant

_RESTORED = text("SELECT EXISTS (SELECT FROM events WHERE xid >= pg_snapshot_xmax(pg_current_snapshot()))")
"""Events of transactions that this server has not come to: readers would wait for them without end."""
_RENUMBER = (
    "ALTER TABLE events DISABLE TRIGGER events_stand",
    "UPDATE events SET xid = '1' WHERE xid > '1'",
    "ALTER TABLE events ENABLE TRIGGER events_stand",
    f"TRUNCATE {', '.join(row.__tablename__ for row in PROJECTIONS)}",
    "UPDATE projector_position SET xid = '0', position = 0",
)
"""A transaction's number is where it was appended, no part of the fact: position alone orders what was restored."""

_LOCK = 0x57E9_3E11
"""Advisory lock that two migrations of one database take in turn."""


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def upgrade(url: str) -> None:
    """Make or migrate the tables, and grant the roles that exist their rights. Twice is once; two at once take turns.

    Events that were restored on another server from a dump are put in that server's order, and the tables for reading
    emptied: the projector fills them again.

    Args:
        url: The database, with a role that may create tables in it.

    Raises:
        NewerDatabase: made by a newer Stepwell.
        DatabaseUnavailable: no connection, or rights are lacking.
        DiskFull: the database's disk is full.
    """
    address = driver_url(url)
    engine = create_engine(address, connect_args={"connect_timeout": 10})
    try:
        with clear_errors(address), engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            _refuse_newer(connection)
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            grant(connection)
            if connection.scalar(_RESTORED):
                for statement in _RENUMBER:
                    connection.execute(text(statement))
    finally:
        engine.dispose()


def bring_up(migrator: str, reader: str) -> None:
    """Migrate a database that needs it, or that the migrator's own role opens; one that is as it should be may be used
    by those who have no such role.

    Args:
        migrator: The database, with the role that owns its tables if the caller has one, else with any.
        reader: The same, with a role that may read it.

    Raises:
        As `upgrade`.
    """
    if migrator == reader:
        try:
            check(reader)
            return
        except OldDatabase:
            pass
    upgrade(migrator)


def check(url: str) -> None:
    """See that the database has the form that this Stepwell works on.

    Raises:
        OldDatabase: it is empty or older.
        RestoredDatabase: it was moved to another server and not migrated since.
        NewerDatabase: it is newer.
        DatabaseUnavailable: no connection.
    """
    address = driver_url(url)
    engine = create_engine(address, connect_args={"connect_timeout": 10})
    where = shown(address)
    try:
        with clear_errors(address), engine.connect() as connection:
            found = _refuse_newer(connection)
            wanted = ScriptDirectory.from_config(_config()).get_current_head()
            remedy = f"stop the workers, then run `python -m db.migrate {where}` with a role that owns the tables"
            if found != wanted:
                raise OldDatabase(
                    f"the database {where} has form {found or 'none'}, this Stepwell works on {wanted}: {remedy}"
                )
            if connection.scalar(_RESTORED):
                raise RestoredDatabase(f"the database {where} was restored from another server: {remedy}")
    finally:
        engine.dispose()


def _refuse_newer(connection: Connection) -> str | None:
    """Form of the database, None for an empty one."""
    found = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if found is not None and found not in known:
        where = shown(connection.engine.url)
        raise NewerDatabase(
            f"the database {where} has form {found}, this Stepwell knows up to {max(known)}: upgrade Stepwell"
        )
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m db.migrate postgresql://user:password@host:port/name")
    upgrade(sys.argv[1])
