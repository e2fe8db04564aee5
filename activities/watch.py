"""watch_run: looks after a run, tells of stalls and of limits that are reached, and keeps `health/<run>`."""

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import datetime

from temporalio import activity
from temporalio.client import Client

from activities.run_troubles import WATCHER, Memory, RunTroubles
from activities.stores import Stores
from activities.usage_feed import UsageFeed
from db.engines import Engines
from db.errors import Fenced
from db.recorded import START, Position
from db.workers import LiveWorker, WorkerLeases
from stepwell.contracts.run import Stall, WatchReport, WatchRequest
from stepwell.events import StallBegan, StallEnded, UsageRecorded
from stepwell.events.base import Event
from stepwell.events.streams import health_stream
from stepwell.health.fold import Health
from stepwell.health.stalls import KINDS, Changes, Present, changes
from stepwell.health.usage import Reached, UsageCount, reached

LOOK_S = 3.0
"""Between two looks."""
TELL_S = 3600.0
"""After this there is something to tell: what was used."""
RECORD_S = 60.0
"""Between two records of usage."""
UNSEEN_S = 120.0
"""Longest time that counts as watched though nobody looked: a watcher was restarted, or waited for the database."""
ACCELERATED = ("trainer", "engine")
"""Kinds of workers that hold an accelerator."""
LAST_WORD_S = 2.0
"""A worker that ends waits no longer for its last record."""

_log = logging.getLogger(__name__)


class WatchActivities:
    """Watches runs.

    Args:
        stores: of the control worker.
        leases: of all workers.
        engines: those that take traffic.
        client: asks Temporal what a run waits for.
        lease_s: a worker's lease ends so long after its last sign of life.
    """

    def __init__(
        self, stores: Stores, leases: WorkerLeases, engines: Engines, client: Client, *, lease_s: float
    ) -> None:
        self._stores = stores
        self._leases = leases
        self._engines = engines
        self._client = client
        self._lease_s = lease_s
        self._memories: dict[str, Memory] = {}

    @activity.defn(name=WATCHER)
    async def watch_run(self, request: WatchRequest) -> WatchReport:
        """Returns when the stalls are others than the workflow knows, when a limit is reached, or after an hour."""
        workflow = activity.info().workflow_id
        assert workflow is not None
        memory = self._memory(request.run)
        troubles = RunTroubles(
            self._leases,
            self._engines,
            self._stores.ledger,
            self._client,
            request.run,
            workflow,
            self._lease_s,
            memory,
        )
        watch = _Watch(self._stores, self._leases, troubles, memory, request)
        await watch.begin()
        try:
            return await watch.until_something_is_told()
        except asyncio.CancelledError:
            await watch.say_last()
            raise

    def _memory(self, run: str) -> Memory:
        """Of a run that this process has watched until now; a run that it has not has no past here."""
        now = time.monotonic()
        self._memories = {name: kept for name, kept in self._memories.items() if now - kept.looked_at <= UNSEEN_S}
        return self._memories.setdefault(run, Memory(looked_at=now, heard_at=now))


class _Watch:
    """One call of the activity: the only writer of the health stream, or it is fenced."""

    def __init__(
        self, stores: Stores, leases: WorkerLeases, troubles: RunTroubles, memory: Memory, request: WatchRequest
    ) -> None:
        self._stores = stores
        self._leases = leases
        self._troubles = troubles
        self._memory = memory
        self._request = request
        self._stream = health_stream(request.run)
        self._health = Health()
        self._next_seq = 0
        self._count = UsageCount(None)
        self._feed = UsageFeed(stores.ledger, request.run, START)
        self._unseen_s = 0.0
        self._looked_at = self._recorded_at = time.monotonic()

    async def begin(self) -> None:
        """Goes on from what the ledger says."""
        for recorded in await self._stores.ledger.read(self._stream):
            self._health.see(recorded.event, datetime.fromisoformat(recorded.envelope.time).timestamp())
            self._next_seq = recorded.seq + 1
        last = self._health.usage
        if last is not None and self._health.usage_s is not None:
            self._count = UsageCount(last)
            position = Position(last.seen_xid, last.seen_position)
            self._feed = UsageFeed(self._stores.ledger, self._request.run, position)
            self._unseen_s = max(0.0, time.time() - self._health.usage_s)
        self._looked_at = time.monotonic()

    async def until_something_is_told(self) -> WatchReport:
        """Looks again and again."""
        began = time.monotonic()
        while True:
            await self._look()
            over = reached(self._count.usage, self._request.limits, self._request.held)
            if set(self._stalls) != set(self._request.known) or over or time.monotonic() - began >= TELL_S:
                await self._record_usage()
                return self._report(over)
            if self._health.usage is None or time.monotonic() - self._recorded_at >= RECORD_S:
                await self._record_usage()
            await asyncio.sleep(LOOK_S)

    async def say_last(self) -> None:
        """Records usage before this call ends without an answer; what is lost is at most what a minute used."""
        try:
            async with asyncio.timeout(LAST_WORD_S):
                await self._record_usage()
        except (Fenced, TimeoutError) as error:
            _log.warning("run %s: its usage since the last record is not recorded: %s", self._request.run, error)

    @property
    def _stalls(self) -> tuple[Stall, ...]:
        return tuple(stall.stall for stall in self._health.standing)

    def _report(self, over: Reached | None) -> WatchReport:
        return WatchReport(
            stalls=self._stalls,
            usage=self._count.usage,
            reached=over.limit if over else None,
            cause=over.cause if over else "",
        )

    async def _look(self) -> None:
        live = await self._leases.live(KINDS, run=self._request.run)
        alive = _present(live)
        await self._count_usage(sum(worker.kind in ACCELERATED for worker in live))
        standing = self._health.standing
        found = await self._troubles.absences(alive, [stall.what for stall in standing])
        of_work = await self._troubles.of_work(alive)
        judged = [stall for stall in standing if stall.what in KINDS or of_work is not None]
        await self._record(changes(judged, [*found, *(of_work or [])], time.time()))

    async def _count_usage(self, accelerators: int) -> None:
        now = time.monotonic()
        passed_s = min(UNSEEN_S, now - self._looked_at + self._unseen_s)
        self._unseen_s, self._looked_at, self._memory.looked_at = 0.0, now, now
        self._count.pass_time(passed_s, accelerators)
        self._count.see(await self._feed.take())
        if self._feed.gets_on:
            self._memory.heard_at = now

    async def _record(self, changed: Changes) -> None:
        """Records which stalls are over and which there are now."""
        now_s, number = time.time(), len(self._health.stalls)
        events: list[Event] = [
            StallEnded(number=stall.number, lasted_s=max(0.0, now_s - stall.began_s)) for stall in changed.ended
        ]
        events += [
            StallBegan(number=number, what=trouble.what, cause=trouble.cause, noticed_after_s=trouble.since_s)
            for number, trouble in enumerate(changed.begun, number)
        ]
        if events:
            await self._append(events)

    async def _record_usage(self) -> None:
        """Records what was used so far."""
        position, last = self._feed.position, self._health.usage
        recorded = UsageRecorded(
            number=0 if last is None else last.number + 1,
            **self._count.usage.model_dump(),
            seen_xid=position.xid,
            seen_position=position.position,
        )
        await self._append([recorded])
        self._recorded_at = time.monotonic()

    async def _append(self, events: Sequence[Event]) -> None:
        """Appends to the health stream.

        Raises:
            Fenced: another call watches the run by now.
        """
        head = await self._stores.ledger.append(
            self._stream, events, expected_seq=self._next_seq, actor=self._stores.actor
        )
        self._next_seq = head.seq + 1
        for event in events:
            self._health.see(event, time.time())


def _present(live: Sequence[LiveWorker]) -> dict[str, Present]:
    """Live workers by kind, oldest first in each."""
    present: dict[str, Present] = {}
    for worker in live:
        known = present.get(worker.kind)
        there_s = max(0.0, time.time() - worker.registered_at.timestamp())
        present[worker.kind] = Present(1, there_s) if known is None else Present(known.count + 1, known.for_s)
    return present
