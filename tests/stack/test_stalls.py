"""A run's watcher on real services: stalls with their causes, limits that are reached, each recorded once."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.testing import ActivityEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.run_troubles import Failure, Memory, RunTroubles
from activities.stores import Stores
from activities.watch import WatchActivities
from db.blobs import BlobStore
from db.database import Database
from db.engines import Engines
from db.ledger import Ledger
from db.workers import WorkerAddress, WorkerLeases
from stepwell.contracts.run import Progress, WatchReport, WatchRequest
from stepwell.events import (
    HoldRaised,
    RolloutGraded,
    StallBegan,
    StallEnded,
    TurnRecorded,
    UsageRecorded,
    VerdictReached,
)
from stepwell.events.base import Event
from stepwell.events.streams import health_stream, operator_stream, rollout_stream, verdict_stream
from stepwell.health.stalls import Present
from workers.runtime import connect
from workers.services.addresses import Addresses

ALIVE_S = 55.0
"""Longer than any of these tests; no lease is a minute long."""


class Flaky:
    """An activity that fails until it is mended."""

    def __init__(self) -> None:
        self.mended = False

    @activity.defn(name="flaky")
    async def flaky(self) -> None:
        if not self.mended:
            raise OSError("the disk of host-3 is on fire")


@workflow.defn(name="Stubborn")
class Stubborn:
    """Asks for it again and again."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(
            "flaky",
            start_to_close_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=100), backoff_coefficient=1.0),
        )
        await workflow.sleep(600)

    @workflow.query
    def progress(self) -> Progress:
        return Progress(
            state="running",
            waiting_for="engines to load version 3",
            version=3,
            generating=3,
            open_groups=0,
            training=3,
            serving=2,
            last_validation=None,
        )


@workflow.defn(name="Broken")
class Broken:
    """Cannot take its first step, as after a deployment that does not fit the history."""

    @workflow.run
    async def run(self) -> None:
        raise RuntimeError("activity type of the scheduled event does not match")


@pytest_asyncio.fixture(loop_scope="session")
async def client(services: Addresses) -> Client:
    """A control worker's client."""
    return await connect(services, identity="control:test")


@pytest.fixture
def watching(
    ledger: Ledger, blobs: BlobStore, connections: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> WatchActivities:
    """A control worker's watcher, which looks more often."""
    monkeypatch.setattr("activities.watch.LOOK_S", 0.5)
    stores = Stores(ledger, blobs, actor="control:test/1")
    return WatchActivities(stores, WorkerLeases(connections), Engines(connections), client, lease_s=10.0)


def call(
    watching: WatchActivities, run: str, **request: object
) -> "tuple[ActivityEnvironment, Awaitable[WatchReport]]":
    """The activity under way, as the run's workflow asks for it."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id=f"stepwell/{run}")
    asked = WatchRequest.model_validate({"run": run, "known": (), "limits": {}, "held": (), **request})
    return environment, environment.run(watching.watch_run, asked)


@pytest_asyncio.fixture(loop_scope="session")
async def attended(connections: Database, fresh: Callable[[], str]) -> AsyncIterator[str]:
    """A run whose workers are all there."""
    run, leases = fresh(), WorkerLeases(connections)
    for _ in range(60):  # workers that earlier tests have killed are listed until their leases run out
        if not await leases.live(("trainer", "engine")):
            break
        await asyncio.sleep(0.5)
    held = [
        await leases.register(WorkerAddress(f"{kind}-{run}", kind, run, kind, "host", 1), ttl_s=ALIVE_S)
        for kind in ("trainer", "engine", "sandbox")
    ]
    yield run
    for lease in held:
        await leases.release(lease)


def turn(index: int, tokens: int = 500) -> TurnRecorded:
    return TurnRecorded(
        turn=index,
        epoch=0,
        payload="p",
        version=1,
        prompt_tokens=10,
        generated_tokens=tokens,
        tool="run",
        tree="t",
        engine="e",
        generate_s=4.0,
        tool_s=2.0,
    )


async def record_rollout(ledger: Ledger, run: str, sample: int) -> None:
    """A turn of 500 tokens and 6 s, and a verdict of 3 s that two rollouts share."""
    key = run.ljust(64, "a")
    reached = VerdictReached(task="t", tree="t", grader="g", score=1.0, timed_out=False, report="r", duration_s=3.0)
    await ledger.append(verdict_stream(key), [reached], expected_seq=0, actor="sandbox:test/1")
    graded = RolloutGraded(verdict_key=key, score=1.0, timed_out=False, verdict_head="h", reused=False)
    stream = rollout_stream(run, "0", 0, sample)
    await ledger.append(stream, [turn(0), graded], expected_seq=0, actor="sandbox:test/1")


async def health_of(ledger: Ledger, run: str, kind: type[Event]) -> list[Event]:
    return [each.event for each in await ledger.read(health_stream(run)) if isinstance(each.event, kind)]


async def test_a_limit_is_told_once_and_usage_is_counted_once(
    watching: WatchActivities, attended: str, ledger: Ledger, fresh: Callable[[], str]
) -> None:
    await record_rollout(ledger, fresh(), 0)  # another run's
    await record_rollout(ledger, attended, 0)
    await record_rollout(ledger, attended, 1)

    _, told = call(watching, attended, limits={"generated_tokens": 1000, "hours": None})
    report = await asyncio.wait_for(told, 30)
    assert (report.reached, report.cause) == ("generated_tokens", "generated 1,000 tokens; the limit is 1,000")
    assert report.usage.generated_tokens == 1000
    assert report.usage.sandbox_minutes == pytest.approx((6.0 + 6.0 + 3.0) / 60)

    environment, silent = call(watching, attended, limits={"generated_tokens": 1000}, held=("generated_tokens",))
    task = asyncio.ensure_future(silent)
    await asyncio.sleep(1.5)
    assert not task.done(), "a limit that holds the run already is told again"
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await ledger.append(rollout_stream(attended, "0", 0, 0), [turn(1)], expected_seq=2, actor="sandbox:test/1")
    _, told = call(watching, attended, limits={"gpu_hours": 1e-9}, held=("generated_tokens",))
    report = await asyncio.wait_for(told, 30)
    assert report.usage.generated_tokens == 1500
    assert report.reached == "gpu_hours"
    assert report.usage.gpu_hours == pytest.approx(2 * report.usage.hours)  # a trainer and an engine
    recorded = await health_of(ledger, attended, UsageRecorded)
    assert [each.number for each in recorded if isinstance(each, UsageRecorded)] == list(range(len(recorded)))
    assert len(recorded) == 3


async def test_a_watcher_that_was_replaced_records_nothing_more(
    watching: WatchActivities, attended: str, ledger: Ledger
) -> None:
    environment, replaced = call(watching, attended)
    task = asyncio.ensure_future(replaced)
    await asyncio.sleep(1)
    _, told = call(watching, attended, limits={"hours": 1e-9})
    assert (await asyncio.wait_for(told, 30)).reached == "hours"
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    recorded = await health_of(ledger, attended, UsageRecorded)
    assert [each.number for each in recorded if isinstance(each, UsageRecorded)] == [0, 1]


@asynccontextmanager
async def under_way(client: Client, run: str, name: str) -> AsyncGenerator[Flaky]:
    """A workflow under the id of the run's."""
    flaky = Flaky()
    async with Worker(
        client,
        task_queue=run,
        workflows=[Stubborn, Broken],
        activities=[flaky.flaky],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        handle = await client.start_workflow(name, id=f"stepwell/{run}", task_queue=run)
        try:
            yield flaky
        finally:
            await handle.terminate("the test is over")


async def test_an_activity_that_fails_again_and_again_is_told_with_its_cause_until_it_succeeds(
    watching: WatchActivities, attended: str, ledger: Ledger, client: Client
) -> None:
    async with under_way(client, attended, "Stubborn") as flaky:
        _, told = call(watching, attended)
        report = await asyncio.wait_for(told, 60)
        (stall,) = report.stalls
        assert stall.what == "flaky"
        assert "last with: OSError: the disk of host-3 is on fire" in stall.cause

        _, told = call(watching, attended)  # the call was retried: its answer was lost
        assert (await asyncio.wait_for(told, 60)).stalls == report.stalls
        assert len(await health_of(ledger, attended, StallBegan)) == 1

        flaky.mended = True
        _, told = call(watching, attended, known=report.stalls)
        assert (await asyncio.wait_for(told, 60)).stalls == ()
        (ended,) = await health_of(ledger, attended, StallEnded)
        assert isinstance(ended, StallEnded)
        assert ended.number == 0


async def test_a_workflow_whose_own_task_fails_is_told_with_its_cause(
    watching: WatchActivities, attended: str, client: Client
) -> None:
    async with under_way(client, attended, "Broken"):
        _, told = call(watching, attended)
        (stall,) = (await asyncio.wait_for(told, 60)).stalls
    assert stall.what == "workflow"
    assert "activity type of the scheduled event does not match" in stall.cause


async def test_a_run_that_nothing_works_on_is_told_unless_an_operator_holds_it(
    connections: Database, attended: str, ledger: Ledger, client: Client
) -> None:
    now = time.monotonic()
    memory = Memory(looked_at=now, heard_at=now - 50.0, idle_since=now - 20.0)
    leases, engines = WorkerLeases(connections), Engines(connections)
    troubles = RunTroubles(leases, engines, ledger, client, attended, f"stepwell/{attended}", 10.0, memory)
    alive = {kind: Present(1, 900.0) for kind in ("trainer", "engine", "sandbox")}
    async with under_way(client, attended, "Stubborn") as flaky:
        flaky.mended = True
        await asyncio.sleep(0.5)
        (idle,) = await troubles.of_work(alive) or []
        assert (idle.what, "none has proven a version" in idle.cause) == ("engine", True)

        url, secret = "http://127.0.0.1:1", "s"
        await engines.register(f"e-{attended}", attended, url, "engine-e", secret=secret, ttl_s=ALIVE_S)
        (idle,) = await troubles.of_work(alive) or []
        assert (idle.what, "it waits for engines to load version 3" in idle.cause) == ("workflow", True)

        for key in ("7/1", "9/1"):
            memory.failures[key] = Failure("load_weights", "out of memory", time.monotonic())
        (idle,) = await troubles.of_work(alive) or []
        assert (idle.what, "out of memory" in idle.cause) == ("load_weights", True)

        raised = HoldRaised(hold="publish/3", number=0, cause="the recipe asks")
        await ledger.append(operator_stream(attended), [raised], expected_seq=0, actor="control:test/1")
        assert await troubles.of_work(alive) == []
