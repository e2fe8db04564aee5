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
from db.errors import NewerDatabase, OldDatabase
from db.roles import grant

_LOCK = 0x57E9_3E11
"""Advisory lock that two migrations of one database take in turn."""


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def upgrade(url: str) -> None:
    """Make or migrate the tables, and grant the roles that exist their rights. Twice is once; two at once take turns.

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
    finally:
        engine.dispose()


def check(url: str) -> None:
    """See that the database has the form that this Stepwell works on.

    Raises:
        OldDatabase: it is empty or older.
        NewerDatabase: it is newer.
        DatabaseUnavailable: no connection.
    """
    address = driver_url(url)
    engine = create_engine(address, connect_args={"connect_timeout": 10})
    where = shown(address)
    try:
        with clear_errors(address), engine.connect() as connection:
            found = _refuse_newer(connection)
    finally:
        engine.dispose()
    wanted = ScriptDirectory.from_config(_config()).get_current_head()
    if found != wanted:
        raise OldDatabase(
            f"the database {where} has form {found or 'none'}, this Stepwell works on {wanted}: "
            f"stop the workers, then run `python -m db.migrate {where}` with a role that owns the tables"
        )


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
