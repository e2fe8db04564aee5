"""Takes the histories of workflows that closed into the store, while Temporal still has them.

A loop of each control worker. What is archived stands in `history/<run>`, by workflow and execution: a sweeper that
was killed is replaced by any other, which reads there what is left to do; of two that sweep at once one is fenced, and
reads again. It rests most of the time, so that the run has the processor. When its worker is told to stop, it sweeps
once more, and waits a little for a run that has just ended.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from activities.stores import Stores
from db.errors import BlobStoreUnavailable, DatabaseUnavailable, DiskFull, Fenced
from stepwell.events import HistoryArchived, RunFinished
from stepwell.events.streams import history_stream, run_stream
from workers.history_archive import archived_event, pack
from workflows.ids import run_id, run_of

SWEEP_S = 10.0
"""From the end of one sweep to the next."""
REST = 4.0
"""Rest after each history, in times of what it took: at most a fifth of one processor is used."""
BATCH = 16
"""Histories that one append takes."""
LAST_WORD_S = 4.0
"""A worker that ends waits no longer for its last sweep."""
LOOK_AGAIN_S = 0.2
OVERLAP = timedelta(minutes=2)
"""Temporal's lists lag behind: what closed so long before the newest that was listed is listed again."""
CLOCKS_APART = timedelta(minutes=10)
"""What started longer than this before its run was created is of another ledger's run of the same name."""
RETENTION = "history"
"""Class of the blobs."""
TRIES = 8
"""Appends that others may fence in a row."""

_OURS = "WorkflowId STARTS_WITH 'stepwell/'"
_CLOSED = f"{_OURS} AND ExecutionStatus != 'Running'"
_RUNS = f"{_OURS} AND WorkflowType = 'TrainingRun' AND ExecutionStatus = 'Running'"

_AWAY = (RPCError, TimeoutError, DatabaseUnavailable, BlobStoreUnavailable, DiskFull)
"""Errors of servers that are away, or have no room."""

_log = logging.getLogger(__name__)


class Packed(NamedTuple):
    """A history that is to be archived."""

    event: HistoryArchived
    """What names it."""
    blob: bytes
    """Its bytes."""


@dataclass
class _Archive:
    """What is archived of a run, as far as it was read."""

    created: datetime
    keys: set[str] = field(default_factory=set[str])
    next_seq: int = 0


class HistorySweeper:
    """Sweeps all runs of a ledger.

    Args:
        client: Of the Temporal namespace in which they run.
        stores: Of a control worker.
    """

    def __init__(self, client: Client, stores: Stores) -> None:
        self._client = client
        self._stores = stores
        self._archives: dict[str, _Archive] = {}
        self._since: datetime | None = None

    async def follow(self) -> None:
        """Sweeps until cancelled, through stores and a server that are away for a while."""
        while True:
            try:
                await self.sweep(rest=REST)
            except _AWAY as error:
                _log.warning("histories wait to be archived: %s", error or "no answer")
            await asyncio.sleep(SWEEP_S)

    async def last_word(self) -> None:
        """Sweeps once more, and once a run that has just ended is listed as closed. What it leaves, the next control
        worker takes up."""
        try:
            async with asyncio.timeout(LAST_WORD_S):
                while True:
                    is_ending = await self._is_a_run_ending()
                    await self.sweep()
                    if not is_ending:
                        return
                    await asyncio.sleep(LOOK_AGAIN_S)
        except _AWAY as error:
            _log.warning("histories are left to the next control worker: %s", error or "the time is over")

    async def sweep(self, *, rest: float = 0.0) -> int:
        """Archives what closed and is not archived; returns how many histories that were.

        Args:
            rest: Rest after each history, in times of what it took.

        Raises:
            RPCError: Temporal does not answer.
            DatabaseUnavailable, BlobStoreUnavailable: no answer.
        """
        listed: dict[str, list[WorkflowExecution]] = defaultdict(list)
        newest = self._since
        query = _CLOSED if newest is None else f"{_CLOSED} AND CloseTime >= '{(newest - OVERLAP).isoformat()}'"
        async for execution in self._client.list_workflows(query):
            listed[run_of(execution.id)].append(execution)
            if execution.close_time is not None and (newest is None or execution.close_time > newest):
                newest = execution.close_time
        count = sum([await self._sweep_run(run, executions, rest) for run, executions in listed.items()])
        self._since = newest
        self._archives = {run: archive for run, archive in self._archives.items() if run in listed}
        return count

    async def _sweep_run(self, run: str, executions: Sequence[WorkflowExecution], rest: float) -> int:
        archive = await self._archive(run)
        if archive is None:
            return 0
        missing = [
            execution
            for execution in executions
            if _key(execution) not in archive.keys and execution.start_time > archive.created - CLOCKS_APART
        ]
        batch: list[Packed] = []
        for place, execution in enumerate(sorted(missing, key=lambda each: (each.start_time, each.id)), 1):
            began = time.monotonic()
            packed = await self._fetch(execution)
            if packed is not None:
                batch.append(packed)
            if batch and (len(batch) >= BATCH or place == len(missing)):
                await self._append(run, archive, batch)
                batch = []
            await asyncio.sleep(rest * (time.monotonic() - began))
        return len(missing)

    async def _fetch(self, execution: WorkflowExecution) -> Packed | None:
        """A history, packed; None if Temporal has forgotten it."""
        handle = self._client.get_workflow_handle(execution.id, run_id=execution.run_id)
        try:
            history = await handle.fetch_history()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            _log.warning("the history of %s is gone before it was archived", execution.id)
            return None
        blob = await asyncio.to_thread(pack, history)  # JSON of some thousand events: the loop has beats to send
        return Packed(archived_event(execution, history, blob), blob)

    async def _append(self, run: str, archive: _Archive, batch: Sequence[Packed]) -> None:
        """Appends what no other sweeper has appended meanwhile."""
        for _ in range(TRIES):
            left = [packed for packed in batch if packed.event.key() not in archive.keys]
            if not left:
                return
            try:
                await self._stores.ledger.append(
                    history_stream(run),
                    [packed.event for packed in left],
                    expected_seq=archive.next_seq,
                    actor=self._stores.actor,
                    blobs=[packed.blob for packed in left],
                    retention=RETENTION,
                )
            except Fenced:
                _log.info("another sweeper was faster on run %s", run)
            await self._refresh(run, archive)
        _log.warning("run %s: other sweepers were faster %d times; its histories are archived by them", run, TRIES)

    async def _archive(self, run: str) -> _Archive | None:
        """What is archived of a run; None if the ledger has no such run."""
        if run not in self._archives:
            events = await self._stores.ledger.read(run_stream(run))
            if not events:
                return None
            self._archives[run] = _Archive(datetime.fromisoformat(events[0].envelope.time))
        await self._refresh(run, self._archives[run])
        return self._archives[run]

    async def _refresh(self, run: str, archive: _Archive) -> None:
        for recorded in await self._stores.ledger.read(history_stream(run), archive.next_seq):
            archive.keys.add(recorded.envelope.key)
            archive.next_seq = recorded.seq + 1

    async def _is_a_run_ending(self) -> bool:
        """Whether a run whose last event stands is not listed as closed yet."""
        async for execution in self._client.list_workflows(_RUNS):
            stream = run_stream(run_of(execution.id))
            head = await self._stores.ledger.head(stream)
            if head is not None and execution.id == run_id(run_of(execution.id)):
                last = await self._stores.ledger.read(stream, head.seq)
                if last and isinstance(last[-1].event, RunFinished):
                    return True
        return False


def _key(execution: WorkflowExecution) -> str:
    return f"history/{execution.id}/{execution.run_id}"
