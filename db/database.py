"""One process's connections to Postgres."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

import sqlalchemy.exc
from sqlalchemy import Row, TextClause, make_url
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from db.errors import DatabaseRefused, DatabaseUnavailable, DiskFull
from db.outages import patiently

_DISK_FULL = "53100"
"""SQLSTATE disk_full."""
_PERMISSION = "42501"
"""SQLSTATE insufficient_privilege."""

ANSWER_S = 30.0
"""Longest wait for the answer to one statement: a server that is stopped keeps its connections and says nothing."""
_SESSION = {
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "3",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15s",
    "idle_in_transaction_session_timeout": "60s",
}
"""The server's side of a connection: the transaction of a client that vanished would hold back every reader of all
streams, which read up to the oldest transaction."""
LIVENESS = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "options": " ".join(f"-c {name}={value}" for name, value in _SESSION.items()),
}
"""Parameters of libpq: a network that drops packets is noticed within 15 s, whether we wait for an answer or send."""


def driver_url(url: str) -> URL:
    """A `postgresql://` address with the driver that we use.

    Raises:
        ValueError: it is the address of something else.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise ValueError(
            f"database address with scheme {parsed.drivername!r}: wanted postgresql://user:password@host:port/name"
        )
    return parsed.set(drivername="postgresql+psycopg")


def shown(url: URL) -> str:
    """The address as a message may show it: without password and driver."""
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


class Database:
    """A pooled engine; one a process. Statements commit by themselves: whatever must be atomic is one statement.

    Args:
        url: `postgresql://user:password@host:port/name`.
        pool_size: Connections held at most.
        wait_s: How long statements wait for a database that is away or full.
        application: What the server calls the sessions, in `pg_stat_activity` and its log; workers name kind and pid.
    """

    def __init__(self, url: str, *, pool_size: int = 4, wait_s: float = 0.0, application: str = "stepwell") -> None:
        self.url = driver_url(url)
        self._wait_s = wait_s
        self.engine: AsyncEngine = create_async_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=60,
            isolation_level="AUTOCOMMIT",
            connect_args={**LIVENESS, "application_name": application},
        )

    async def rows(self, statement: TextClause, values: Mapping[str, object]) -> Sequence[Row[Any]]:
        """Run one statement that may be asked twice, and commit; its rows, none for a statement that gives none.

        A pooled connection that turns out dead, as after a restart of the database, is replaced once.

        Raises:
            DatabaseUnavailable: no connection, or a right that the role lacks.
            DiskFull: the database's disk is full.
            sqlalchemy.exc.IntegrityError: a constraint does not hold.
        """
        return await patiently(f"the database {shown(self.url)}", self._wait_s, lambda: self._rows(statement, values))

    async def _rows(self, statement: TextClause, values: Mapping[str, object]) -> Sequence[Row[Any]]:
        with clear_errors(self.url):
            try:
                return await self._once(statement, values)
            except sqlalchemy.exc.DBAPIError as error:
                if not error.connection_invalidated:
                    raise
            return await self._once(statement, values)

    def transaction(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A connection for several statements that stand or fall together."""
        return self.engine.execution_options(isolation_level="READ COMMITTED").begin()

    async def _once(self, statement: TextClause, values: Mapping[str, object]) -> Sequence[Row[Any]]:
        async with self.engine.connect() as connection:
            try:
                async with asyncio.timeout(ANSWER_S):
                    result = await connection.execute(statement, values)
            except TimeoutError as error:
                raise DatabaseUnavailable(
                    f"the database {shown(self.url)} gave no answer in {ANSWER_S:.0f} s: it is stopped or overloaded"
                ) from error
            return result.all() if result.returns_rows else ()

    async def close(self) -> None:
        """Close the connections that are not in use, and the pool."""
        await self.engine.dispose()


def sqlstate(error: sqlalchemy.exc.DBAPIError) -> str | None:
    """The SQLSTATE by which Postgres refused, None where it did not answer at all."""
    return getattr(error.orig, "sqlstate", None)


@contextmanager
def clear_errors(url: URL) -> Generator[None]:
    """Turn a database's refusals that an operator can do something about into errors that say what.

    Raises:
        DatabaseUnavailable: no connection, or a connection lost.
        DatabaseRefused: the role lacks a right.
        DiskFull: the database's disk is full.
    """
    where = shown(url)
    try:
        yield
    except sqlalchemy.exc.DBAPIError as error:
        state = sqlstate(error)
        if state == _DISK_FULL:
            raise DiskFull(f"the disk of the database {where} is full: free space, then run again") from error
        if state == _PERMISSION:
            raise DatabaseRefused(
                f"role {url.username!r} of {where} lacks a right ({error.orig}): "
                "use the role made for this worker, or migrate the database"
            ) from error
        if isinstance(error, sqlalchemy.exc.OperationalError):
            raise DatabaseUnavailable(
                f"no connection to the database {where}: {str(error.orig).strip()}. "
                "Check that it runs and that STEPWELL_DATABASE_URL names it"
            ) from error
        raise
    except sqlalchemy.exc.TimeoutError as error:
        raise DatabaseUnavailable(
            f"no free connection to {where} within a minute: more tasks append at once than the pool has connections"
        ) from error
