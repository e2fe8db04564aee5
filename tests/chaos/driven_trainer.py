"""A real trainer worker, driven step by step by a small workflow on the real Temporal server, and struck at chosen
moments: the kill matrix of the trainer without the rest of a run."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Literal

import psutil
import psycopg
from psycopg.conninfo import make_conninfo
from temporalio import workflow
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from db.ledger import Ledger
from stepwell.contracts.run import RunRef, StepRef, VersionRef
from stepwell.events import CheckpointSaved, StepTrained
from stepwell.events.streams import weights_stream
from tests.chaos.kill_points import LOCKS, KillPoints
from workers.runtime import connect
from workers.services.addresses import Addresses
from workers.services.home import Home
from workers.services.postgres import DATABASE, SUPERUSER
from workers.services.settings import load_settings
from workflows.contracts import NOT_RETRYABLE, TRAINER_QUEUE

TIMEOUT_S = 200.0
LOOK_S = 0.005
QUEUE = "driven-trainer"
HEARTBEAT = timedelta(seconds=4)
"""How soon a dead worker is noticed; a run allows more."""

Moment = Literal["started", "computing", "trained", "saving", "uploading", "saved"]
"""`started`: before the optimiser step; `computing`: in it; `trained`: after it, before `StepTrained` stands; `saving`:
`StepTrained` stands, nothing of the checkpoint; `uploading`: one of its files; `saved`: all of them, not its event."""

_UPLOADS = 1000
"""Kill points from this number on hold the recording of a checkpoint's file; their type says where its bytes lie."""
_UPLOAD_TRIGGER = f"""
CREATE FUNCTION chaos.hold_upload() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE found_point int;
BEGIN
    SELECT a.point INTO found_point FROM chaos.armed a JOIN public.blobs b ON b.digest = NEW.digest AND b.place = a.type
    WHERE NOT a.fired AND a.point >= {_UPLOADS};
    IF FOUND AND NEW.retention = 'checkpoint' THEN
        PERFORM pg_advisory_xact_lock_shared({LOCKS}, found_point);
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER chaos_hold_upload AFTER INSERT ON public.blob_retentions DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION chaos.hold_upload();
""".encode()


@workflow.defn
class DriveTrainer:
    """One step of a run, or its version 0; retried as a run retries."""

    @workflow.run
    async def run(self, step: StepRef) -> VersionRef:
        """Step -1: version 0."""
        made: VersionRef = await workflow.execute_activity(
            "create_policy" if step.step < 0 else "train_step",
            RunRef(run=step.run) if step.step < 0 else step,
            task_queue=TRAINER_QUEUE,
            result_type=VersionRef,
            start_to_close_timeout=timedelta(seconds=TIMEOUT_S),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=200),
                backoff_coefficient=1.0,
                non_retryable_error_types=NOT_RETRYABLE,
            ),
        )
        return made


class DrivenTrainer:
    """A trainer worker and what drives it. Use `driven_trainer`."""

    def __init__(self, client: Client, ledger: Ledger, home: Path, log: Path, points: KillPoints) -> None:
        self._client = client
        self._ledger = ledger
        self._armed = 0
        self._home = home
        self._log = log
        self._points = points
        self.workers: list[subprocess.Popen[bytes]] = []
        """Every worker that was started, the newest last."""

    @property
    def process(self) -> psutil.Process:
        """The newest worker."""
        return psutil.Process(self.workers[-1].pid)

    def ranks(self) -> list[psutil.Process]:
        """Its other ranks."""
        return [child for child in self.process.children() if any("rank_process" in word for word in child.cmdline())]

    def log(self) -> str:
        """What all workers said."""
        return self._log.read_text(errors="replace")

    def start_worker(self) -> None:
        """Starts a worker that dies with this process."""
        with self._log.open("ab") as out:
            self.workers.append(
                subprocess.Popen(
                    [sys.executable, "-m", "cli.main", "worker", "--parent", str(os.getpid()), "trainer"],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    env={**os.environ, "STEPWELL_HOME": str(self._home), "OMP_WAIT_POLICY": "PASSIVE"},
                    start_new_session=True,
                )
            )

    def kill_worker(self) -> None:
        """SIGKILL of the newest worker; returns when it is gone."""
        self.workers[-1].kill()
        self.workers[-1].wait()

    def stop(self) -> None:
        """Ends every worker, stopped ones too."""
        for worker in self.workers:
            worker.kill()
            worker.wait()

    async def begin(self, run: str, step: int) -> WorkflowHandle[DriveTrainer, VersionRef]:
        """Asks for a step; -1: for version 0."""
        return await self._client.start_workflow(
            DriveTrainer.run,
            StepRef(run=run, step=step),
            id=f"drive/{run}/{step}",
            task_queue=QUEUE,
            execution_timeout=timedelta(seconds=TIMEOUT_S),
        )

    async def train(self, run: str, step: int) -> VersionRef:
        """A step, undisturbed; -1: version 0."""
        return await self.ended(await self.begin(run, step))

    async def ended(self, handle: WorkflowHandle[DriveTrainer, VersionRef]) -> VersionRef:
        """Waits for the answer; shows what the workers said when there is none."""
        try:
            return await handle.result()
        except Exception:
            print(self.log()[-6000:])
            raise

    async def struck(self, run: str, step: int, moment: Moment, strike: Callable[[], None]) -> VersionRef:
        """A step in which something is done to the trainer at a moment.

        Returns:
            The version that the step made in the end.
        """
        if moment in ("started", "computing"):
            handle = await self.begin(run, step)
            await self._until(lambda: self._is_started(handle))
            if moment == "computing":
                await self._compute(0.25)
            strike()
            return await self.ended(handle)
        await self._arm(moment, run)
        handle = await self.begin(run, step)
        held = None
        deadline = time.monotonic() + TIMEOUT_S
        while held is None:
            assert time.monotonic() < deadline, self.log()[-6000:]
            await asyncio.sleep(LOOK_S)
            held = await self._points.held()
        strike()
        await self._points.roll_back(held)
        return await self.ended(handle)

    async def last_failure(self, run: str, step: int) -> str:
        """What the attempt before the last one at a step failed of; empty if the first one did it."""
        history = await self._client.get_workflow_handle(f"drive/{run}/{step}").fetch_history()
        started = [each for each in history.events if each.HasField("activity_task_started_event_attributes")]
        return started[-1].activity_task_started_event_attributes.last_failure.message

    async def until_idle(self, process: psutil.Process) -> None:
        """Until a process has computed nothing for a second."""
        before = -1.0
        deadline = time.monotonic() + TIMEOUT_S
        while (now := sum(process.cpu_times()[:2])) - before > 0.05:
            assert time.monotonic() < deadline, self.log()[-6000:]
            before = now
            await asyncio.sleep(1.0)

    async def _arm(self, moment: Moment, run: str) -> None:
        self._armed += 1
        if moment in ("saving", "uploading"):
            place = "postgres" if moment == "saving" else "s3"
            await self._points.arm(_UPLOADS + self._armed, "", place, 0)
            return
        kind = StepTrained if moment == "trained" else CheckpointSaved
        before = [each for each in await self._ledger.read(weights_stream(run)) if isinstance(each.event, kind)]
        await self._points.arm(self._armed, weights_stream(run), kind.__name__, len(before))

    async def _is_started(self, handle: WorkflowHandle[DriveTrainer, VersionRef]) -> bool:
        pending = (await handle.describe()).raw_description.pending_activities
        return any(each.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED for each in pending)

    async def _compute(self, seconds: float) -> None:
        """Until the worker and its ranks have used so much of the processor."""

        def used() -> float:
            processes = [self.process, *self.ranks()]
            return sum(sum(process.cpu_times()[:2]) for process in processes)

        begun = used()

        async def enough() -> bool:
            return used() - begun >= seconds

        await self._until(enough)

    async def _until(self, happened: Callable[[], Awaitable[bool]]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not await happened():
            assert time.monotonic() < deadline, self.log()[-6000:]
            await asyncio.sleep(LOOK_S)


@asynccontextmanager
async def driven_trainer(
    addresses: Addresses, ledger: Ledger, home: Path, folder: Path
) -> AsyncIterator[DrivenTrainer]:
    """A driven trainer, its worker started, for the block."""
    settings = load_settings(Home(home))
    assert settings is not None
    superuser = make_conninfo(
        host="127.0.0.1",
        port=settings.ports.postgres,
        dbname=DATABASE,
        user=SUPERUSER,
        password=settings.superuser_password,
    )
    client = await connect(addresses, identity="driven trainer")
    points = await KillPoints.open(superuser)
    driven = DrivenTrainer(client, ledger, home, folder / "trainer.log", points)
    worker = Worker(client, task_queue=QUEUE, workflows=[DriveTrainer], workflow_runner=UnsandboxedWorkflowRunner())
    try:
        await points.install()
        async with await psycopg.AsyncConnection.connect(superuser, autocommit=True) as connection:
            await connection.execute(_UPLOAD_TRIGGER)
        driven.start_worker()
        async with worker:
            yield driven
    finally:
        driven.stop()
        await points.disarm()
        await points.remove()
        await points.close()


def stop_process(process: psutil.Process) -> None:
    """SIGSTOP."""
    process.send_signal(signal.SIGSTOP)
