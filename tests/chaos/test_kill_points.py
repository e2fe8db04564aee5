"""Kill points hold a transaction before it commits, roll it back or let it through, and leave nothing behind."""

import asyncio
from collections.abc import Callable

import psycopg

from db.database import Database
from db.errors import DatabaseUnavailable
from db.ledger import Ledger
from stepwell.events import GroupOpened
from stepwell.events.base import Event
from tests.chaos.kill_points import Held, KillPoints, kill_points
from tests.stack.database import DatabaseUrls


class Noted(GroupOpened):
    """Any event would do."""

    def key(self) -> str:
        return f"opened/{self.samples}"


def event(number: int) -> Event:
    return Noted(task="0" * 64, task_id="task", version=0, samples=number)


async def held(points: KillPoints) -> Held:
    for _ in range(500):
        if (waiting := await points.held()) is not None:
            return waiting
        await asyncio.sleep(0.02)
    raise AssertionError("no transaction waits at a kill point")


async def append(database: DatabaseUrls, stream: str, *numbers: int) -> None:
    """Appends at the beginning of a stream, as a writer of its own."""
    writer = Database(database.appender, pool_size=1, application="stepwell/test/4711")
    try:
        events = [event(number) for number in numbers]
        await Ledger(writer).append(stream, events, expected_seq=0, actor="test:writer")
    finally:
        await writer.close()


async def test_held_append_is_in_the_ledger_only_when_it_is_let_through(
    superuser: str, database: DatabaseUrls, ledger: Ledger, fresh: Callable[[], str]
) -> None:
    stream = f"test/{fresh()}"
    async with kill_points(superuser, [(stream, "GroupOpened", 0)]) as points:
        appending = asyncio.create_task(append(database, stream, 1))
        waiting = await held(points)
        assert (waiting.point, waiting.kind, waiting.writer) == (0, "test", 4711)
        assert await ledger.head(stream) is None
        await points.commit(waiting)
        await appending
    assert len(await ledger.read(stream)) == 1


async def test_rolled_back_append_leaves_nothing_and_the_next_one_passes(
    superuser: str, database: DatabaseUrls, ledger: Ledger, fresh: Callable[[], str]
) -> None:
    stream = f"test/{fresh()}"
    async with kill_points(superuser, [(stream, "GroupOpened", 1)]) as points:
        appending = asyncio.create_task(append(database, stream, 1, 2))
        await points.roll_back(await held(points))
        await asyncio.wait([appending])
        assert await points.held() is None, "a kill point fires once"
    # The writer's pool asks again by itself after a lost session, as it does after a restart of the database.
    if appending.exception() is not None:
        assert isinstance(appending.exception(), DatabaseUnavailable)
        assert await ledger.head(stream) is None
        await append(database, stream, 1, 2)
    assert len(await ledger.read(stream)) == 2


async def test_other_streams_types_and_places_are_not_held(
    superuser: str, database: DatabaseUrls, ledger: Ledger, fresh: Callable[[], str]
) -> None:
    name = fresh()
    armed = [(f"test/{name}/other", "GroupOpened", 0), (f"test/{name}", "GroupClosed", 0)]
    async with kill_points(superuser, [*armed, (f"test/{name}", "GroupOpened", 2)]):
        async with asyncio.timeout(10):
            await append(database, f"test/{name}", 1, 2)
    assert len(await ledger.read(f"test/{name}")) == 2


async def test_nothing_of_the_kill_points_is_left(superuser: str) -> None:
    async with kill_points(superuser, [("test/%", "GroupOpened", 0)]):
        pass
    async with await psycopg.AsyncConnection.connect(superuser) as connection:
        question = "SELECT count(*) FROM pg_trigger WHERE tgname = 'chaos_hold'"
        triggers = await (await connection.execute(question)).fetchone()
        schemas = await (
            await connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'chaos'")
        ).fetchone()
    assert (triggers, schemas) == ((0,), (0,))
