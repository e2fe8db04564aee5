"""Kill points: a trigger made by the test holds the transaction that appends a certain event, just before it commits.

The trigger waits for an advisory lock that the test holds. The test sees who waits, does to the writer what it wants,
and then either ends the waiting session, so that the append is rolled back, or releases the lock, so that it is
committed. A kill point fires once. Everything lies in a schema of its own, which `remove` drops; the product knows
nothing of it.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import LiteralString, Self

import psycopg

LOCKS = 0x57E9_C405
"""First key of our advisory locks; the second is the kill point's number."""

INSTALL = f"""
CREATE SCHEMA chaos;
CREATE TABLE chaos.armed (
    point int PRIMARY KEY, stream text NOT NULL, type text NOT NULL, ordinal bigint NOT NULL,
    fired boolean NOT NULL DEFAULT false
);
CREATE FUNCTION chaos.hold() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE found_point int;
BEGIN
    SELECT a.point INTO found_point FROM chaos.armed a
    WHERE NOT a.fired AND a.type = NEW.type AND NEW.stream LIKE a.stream AND a.ordinal = (
        SELECT count(*) FROM public.events e
        WHERE e.stream LIKE a.stream AND e.type = NEW.type AND e.position < NEW.position
    ) ORDER BY a.point LIMIT 1;
    IF FOUND THEN
        PERFORM pg_advisory_xact_lock_shared({LOCKS}, found_point);
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER chaos_hold AFTER INSERT ON public.events DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION chaos.hold();
""".encode()
REMOVE = "DROP SCHEMA IF EXISTS chaos CASCADE; DROP TRIGGER IF EXISTS chaos_hold ON public.events"

WAITING = f"""
SELECT l.objid::int, l.pid, a.application_name, a.client_port FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND NOT l.granted AND l.classid = {LOCKS}::oid
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY l.objid LIMIT 1
""".encode()

LOOK_S = 0.02


@dataclass(frozen=True)
class Held:
    """A transaction that waits at a kill point."""

    point: int
    """Which one."""
    backend: int
    """Process of the database that serves the writer."""
    application: str
    """What the writer calls itself: `stepwell/<kind>/<pid>`."""
    client_port: int
    """Its end of the connection."""

    @property
    def kind(self) -> str:
        """Kind of the writer."""
        return self.application.split("/")[1]

    @property
    def writer(self) -> int:
        """Process of the writer."""
        return int(self.application.split("/")[2])


class KillPoints:
    """The kill points of one database."""

    def __init__(self, connection: "psycopg.AsyncConnection[tuple[object, ...]]") -> None:
        self._connection = connection

    @classmethod
    async def open(cls, superuser: str) -> Self:
        """Connects; `superuser` is the database with a role that may end sessions of others."""
        return cls(await psycopg.AsyncConnection.connect(superuser, autocommit=True))

    async def close(self) -> None:
        """Releases whatever is held, by ending the session that holds the locks."""
        await self._connection.close()

    async def install(self) -> None:
        """Makes the schema and the trigger."""
        await self._connection.execute(INSTALL)

    async def remove(self) -> None:
        """Drops them."""
        await self._connection.execute(REMOVE)

    async def arm(self, point: int, stream: str, type: str, ordinal: int) -> None:
        """From now on the append of an event waits.

        Args:
            point: number of this kill point.
            stream: pattern (SQL's LIKE) of its stream.
            type: its type.
            ordinal: how many events of the type the streams of that pattern have before it.
        """
        await self._connection.execute("SELECT pg_advisory_lock(%s, %s)", (LOCKS, point))
        values = (point, stream, type, ordinal)
        await self._connection.execute(
            "INSERT INTO chaos.armed (point, stream, type, ordinal) VALUES (%s, %s, %s, %s)", values
        )

    async def held(self) -> Held | None:
        """A transaction that waits at a kill point, if any does; that kill point will hold nobody any more."""
        row = await (await self._connection.execute(WAITING)).fetchone()
        if row is None:
            return None
        point, backend, application, port = row
        await self._connection.execute("UPDATE chaos.armed SET fired = true WHERE point = %s", (point,))
        assert isinstance(point, int)
        assert isinstance(backend, int)
        assert isinstance(port, int)
        return Held(point, backend, str(application), port)

    async def roll_back(self, held: Held) -> None:
        """Ends the waiting session: what it was about to append is not. Returns when it is gone."""
        await self._connection.execute("SELECT pg_terminate_backend(%s)", (held.backend,))
        await self._gone(held, "SELECT 1 FROM pg_stat_activity WHERE pid = %s")
        await self._unlock(held.point)

    async def commit(self, held: Held) -> None:
        """Lets the waiting transaction commit. Returns when it waits no more."""
        await self._unlock(held.point)
        await self._gone(held, "SELECT 1 FROM pg_locks WHERE locktype = 'transactionid' AND pid = %s")

    async def disarm(self) -> None:
        """Lets everything pass."""
        await self._connection.execute("UPDATE chaos.armed SET fired = true")
        await self._connection.execute("SELECT pg_advisory_unlock_all()")

    async def _unlock(self, point: int) -> None:
        await self._connection.execute("SELECT pg_advisory_unlock(%s, %s)", (LOCKS, point))

    async def _gone(self, held: Held, question: LiteralString) -> None:
        deadline = time.monotonic() + 10.0
        while await (await self._connection.execute(question, (held.backend,))).fetchone():
            assert time.monotonic() < deadline, f"the session of {held} goes on after 10 s"
            await asyncio.sleep(LOOK_S)


@asynccontextmanager
async def kill_points(superuser: str, armed: Sequence[tuple[str, str, int]]) -> AsyncGenerator[KillPoints]:
    """Kill points in a database for the block: (pattern of the stream, type, ordinal), numbered from 0."""
    points = await KillPoints.open(superuser)
    try:
        await points.install()
        for number, (stream, type, ordinal) in enumerate(armed):
            await points.arm(number, stream, type, ordinal)
        yield points
    finally:
        await points.disarm()
        await points.remove()
        await points.close()
