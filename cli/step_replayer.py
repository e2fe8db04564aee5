"""Replays steps of a run out of its stores, one after the other or in several processes."""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass

from pydantic import ValidationError

from activities.stores import NoSuchRun
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.objects import ObjectStore
from db.step_record import RunSteps
from stepwell.audit.replaying.difference import Difference
from stepwell.audit.replaying.replay import StepReplay, replay
from stepwell.audit.replaying.rows import row_differences
from stepwell.recipe.loading import RecipeError
from workers.lifetime import die_with_parent
from workers.services.addresses import Addresses


@dataclass(frozen=True, slots=True)
class TimedReplay:
    """A replay, and what it took."""

    replay: StepReplay
    """What it found."""
    seconds: float
    """Wall clock, reading included."""


class StepReplayer:
    """Replays steps of one run in this process, with the auditor's role.

    Args:
        runner: Its event loop.
        addresses: Of the services.
        run: Name of the run.
    """

    def __init__(self, runner: asyncio.Runner, addresses: Addresses, run: str) -> None:
        self._runner = runner
        self._database = Database(addresses.auditor, pool_size=2)
        self._objects = ObjectStore(addresses.bucket)
        self._steps = runner.run(self._open(run))

    @property
    def admitted(self) -> list[int]:
        """Steps that can be replayed, ascending."""
        return self._steps.admitted

    def replay(self, step: int) -> TimedReplay:
        """Replays a step.

        Raises:
            DatabaseUnavailable, BlobStoreUnavailable: no answer.
        """
        began = time.perf_counter()
        found = self._runner.run(self._replay(step))
        return TimedReplay(found, time.perf_counter() - began)

    def close(self) -> None:
        """Closes the connections."""
        self._runner.run(self._objects.close())
        self._runner.run(self._database.close())

    async def _open(self, run: str) -> RunSteps:
        try:
            steps = await RunSteps.open(Ledger(self._database), BlobStore(self._database, self._objects), run)
        except ValidationError as error:
            raise RecipeError(
                f"run {run}: what decides its batches cannot be read from its recipe ({error.errors()[0]['msg']}); "
                "`stepwell audit verify` names the key"
            ) from error
        if steps is None:
            raise NoSuchRun(f"the ledger has no run {run!r}")
        return steps

    async def _replay(self, step: int) -> StepReplay:
        record = await self._steps.read(step)
        rows: list[Difference] = []
        for group in record.groups:  # one at a time: the tokens of a whole step may be some gigabytes
            rows += row_differences(step, group, await self._steps.payloads(group))
        return replay(record, self._steps.recipe, rows)


@contextmanager
def step_replayer(addresses: Addresses, run: str) -> Generator[StepReplayer]:
    """A replayer, for the block.

    Raises:
        NoSuchRun: there is no such run.
        RecipeError: what decides its batches cannot be read.
        DatabaseUnavailable: no answer.
    """
    with asyncio.Runner() as runner:
        replayer = StepReplayer(runner, addresses, run)
        try:
            yield replayer
        finally:
            replayer.close()


def replay_in_processes(
    addresses: Addresses, run: str, steps: Sequence[int], processes: int | None = None
) -> Iterator[TimedReplay]:
    """Replays steps in processes of their own, each in the order in which it is done.

    Args:
        addresses: Of the services.
        run: Name of the run.
        steps: Which.
        processes: How many; one a processor unless given.

    Raises:
        DatabaseUnavailable, BlobStoreUnavailable: no answer.
        BrokenProcessPool: one of the processes was killed.
    """
    count = processes or len(os.sched_getaffinity(0))
    pool = ProcessPoolExecutor(
        min(count, len(steps)) or 1,
        mp_context=multiprocessing.get_context("spawn"),  # a fork would share this process's connections
        initializer=_begin,
        initargs=(os.getpid(), addresses, run),
    )
    with pool:
        for done in as_completed([pool.submit(_replay_here, step) for step in steps]):
            yield done.result()


_here: list[StepReplayer] = []
"""In a process of a pool: the one that it replays with until it ends."""


def _begin(parent: int, addresses: Addresses, run: str) -> None:
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair: it cancels what is left
    _here.append(StepReplayer(asyncio.Runner(), addresses, run))


def _replay_here(step: int) -> TimedReplay:
    return _here[0].replay(step)
