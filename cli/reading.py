"""All that the reading verbs ask of the ledger's services: a run's events as they come, its transcripts, its workers.

The ledger is read with the auditor's role, which can change nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import quote

from activities.stores import NoSuchRun
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.objects import ObjectStore
from db.recorded import START, Position, Recorded
from db.run_source import SourceReader
from db.workers import LastWorker, LiveWorker, WorkerLeases
from stepwell.events import RolloutGraded
from stepwell.events.streams import verdict_stream
from stepwell.nearest_names import did_you_mean
from stepwell.report.examples import Transcript
from stepwell.report.picture import RunPicture
from stepwell.report.transcripts import transcripts
from workers.services.addresses import Addresses
from workflows.ids import run_id

_KINDS = ("run", "weights", "operator", "health", "engine", "validation", "prompt", "rollout")
"""Kinds of streams that belong to one run; verdicts, which runs share, are found by their keys."""
_PAGE = 5000
"""Events asked for at once."""
_VERDICTS = 500
"""Verdicts asked for at once."""


@dataclass(frozen=True)
class Cursor:
    """How far a reader of one run has come."""

    positions: Mapping[str, Position] = field(default_factory=lambda: dict[str, Position]())
    """By kind of stream."""


@dataclass(frozen=True)
class Batch:
    """What is new of a run."""

    events: list[Recorded]
    """In order within each stream."""
    after: Cursor
    """Where the next batch begins."""


class Reader:
    """Reads runs.

    Args:
        ledger: With the auditor's role.
        blobs: The store of the same services.
        leases: Of their workers.
    """

    def __init__(self, ledger: Ledger, blobs: BlobStore, leases: WorkerLeases) -> None:
        self.blobs = blobs
        self._ledger = ledger
        self._leases = leases

    async def require(self, run: str) -> None:
        """Checks that a run exists.

        Raises:
            NoSuchRun: it does not; names the nearest that do.
            DatabaseUnavailable: no connection.
        """
        if await self._ledger.head(f"run/{run}") is None:
            raise NoSuchRun(_unknown(run, await self.runs()))

    async def runs(self) -> list[str]:
        """Names of all runs, the oldest first.

        Raises:
            DatabaseUnavailable: no connection.
        """
        return [name.removeprefix("run/") for name in await self._ledger.streams("run/")]

    async def stream(self, name: str) -> list[Recorded]:
        """Events of one stream. Raises as `events_of`."""
        return await self._ledger.read(name)

    async def last_event(self, stream: str) -> Recorded | None:
        """The last event of a stream, None if it does not exist. Raises as `events_of`."""
        head = await self._ledger.head(stream)
        return None if head is None else (await self._ledger.read(stream, head.seq))[0]

    async def live(self, kind: str, run: str) -> list[LiveWorker]:
        """Live workers of a kind that can work on a run.

        Raises:
            DatabaseUnavailable: no connection.
        """
        return await self._leases.live([kind], run=run)

    async def last(self, kind: str, run: str) -> LastWorker | None:
        """The one of them that was live last.

        Raises:
            DatabaseUnavailable: no connection.
        """
        return await self._leases.last(kind, run)

    async def events_of(self, run: str, after: Cursor) -> Batch:
        """Events of a run, its verdicts among them, that come after a cursor.

        Raises:
            DatabaseUnavailable: no connection.
            UnknownEvent: an event of a newer Stepwell.
        """
        found: list[Recorded] = []
        positions: dict[str, Position] = {}
        for kind in _KINDS:
            own = f"{kind}/{run}"
            position = after.positions.get(kind, START)
            while True:
                page = await self._ledger.read_after(position, own, _PAGE)
                position = page.position
                found += [each for each in page.events if each.stream == own or each.stream.startswith(f"{own}/")]
                if len(page.events) < _PAGE:
                    break
            positions[kind] = position
        return Batch(found + await self._verdicts(found), Cursor(positions))

    async def source(self, run: str) -> SourceReader:
        """What is needed of a run's ledger to say what came of what. Raises as `events_of`."""
        source = SourceReader(self._ledger, self.blobs, run)
        await source.open()
        return source

    async def transcripts(self, picture: RunPicture) -> list[Transcript]:
        """What was said in the rollouts that are worth showing; one whose blobs have expired is left out.

        Raises:
            DatabaseUnavailable, BlobStoreUnavailable: no answer.
        """
        source = await self.source(picture.run)
        return await source.answer(partial(transcripts, examples=picture.examples.rollouts))

    async def _verdicts(self, events: list[Recorded]) -> list[Recorded]:
        """Verdicts that were reached for these events; one that was reused took no time."""
        keys = dict.fromkeys(
            verdict_stream(each.event.verdict_key)
            for each in events
            if isinstance(each.event, RolloutGraded) and not each.event.reused
        )
        streams, found = list(keys), list[Recorded]()
        for start in range(0, len(streams), _VERDICTS):
            by_stream = await self._ledger.read_many(streams[start : start + _VERDICTS])
            found += [each for stream in by_stream.values() for each in stream]
        return found


class Follower:
    """Keeps a picture of one run up to date.

    Args:
        reader: Reads it.
        run: Its name.
    """

    def __init__(self, reader: Reader, run: str) -> None:
        self.picture = RunPicture(run)
        self._reader = reader
        self._after = Cursor()

    async def refresh(self) -> None:
        """Takes up what is new. Raises as `Reader.events_of`."""
        batch = await self._reader.events_of(self.picture.run, self._after)
        self._after = batch.after
        self.picture.see_all((each.envelope, each.event) for each in batch.events)


@asynccontextmanager
async def open_reader(addresses: Addresses, *, wait_s: float = 0.0) -> AsyncGenerator[Reader]:
    """A reader, for the block; it waits for stores that are away."""
    database = Database(addresses.auditor, pool_size=2, wait_s=wait_s)
    objects = ObjectStore(addresses.bucket, wait_s=wait_s)
    try:
        yield Reader(Ledger(database), BlobStore(database, objects), WorkerLeases(database))
    finally:
        await objects.close()
        await database.close()


def require_run(addresses: Addresses, run: str) -> None:
    """Checks that a run exists, for a verb that has no event loop yet. Raises as `Reader.require`."""

    async def check() -> None:
        async with open_reader(addresses) as reader:
            await reader.require(run)

    asyncio.run(check())


def workflow_page(addresses: Addresses, run: str) -> str:
    """Address of the run's page in the Temporal UI; empty if the UI's is not known."""
    if addresses.temporal_ui is None:
        return ""
    return f"{addresses.temporal_ui}/namespaces/{addresses.namespace}/workflows/{quote(run_id(run), safe='')}"


def _unknown(run: str, known: list[str]) -> str:
    if not known:
        return f"no run {run!r}: the ledger has no runs; `stepwell run RECIPE` makes one"
    newest = ", ".join(known[-10:])
    return f"no run {run!r}: {did_you_mean(run, known, most=3) or f'there are {newest}'}"
