"""A version on all engines: one that hangs or fails holds up neither the run nor the engines that have attested."""

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.run import RunActivities
from activities.seals import Sealer
from activities.stores import Stores
from db.blobs import BlobStore
from db.database import Database
from db.engines import Engines
from db.ledger import Ledger
from stepwell.contracts.engine import Attestation, LoadRequest
from stepwell.signing import SigningKeys
from workers.build import build_id, deployment_config, take_over
from workers.runtime import connect
from workers.services.addresses import Addresses
from workflows.contracts import CONTROL_QUEUE
from workflows.engine_loading import LATE, load_on_all


@dataclass
class Loaded:
    """What came of it."""

    engines: list[str]
    seconds: float


@dataclass
class Waits:
    """The part of a run's state that loading sees."""

    serving: int = -1
    engines: tuple[str, ...] = ()
    waiting: list[str] = field(default_factory=list)

    def wait(self, what: str) -> None:
        self.waiting.append(what)


@workflow.defn
class Loading:
    @workflow.run
    async def run(self, run: str) -> Loaded:
        state, began = Waits(), workflow.now()
        await load_on_all(run, 1, state, lambda: None)
        assert state.serving == 1
        return Loaded(list(state.engines), (workflow.now() - began).total_seconds())


def engine(name: str, *, failures: int = 0) -> Callable[..., object]:
    """`load_weights` of an engine that fails a few times first."""
    left = [failures]

    @activity.defn(name="load_weights")
    async def load_weights(request: LoadRequest) -> Attestation:
        if left[0]:
            left[0] -= 1
            raise RuntimeError("it could not load")
        return Attestation(engine=name, version=request.version, digest="d", probe_difference=0.0)

    return load_weights


@pytest.fixture
async def client(services: Addresses) -> Client:
    return await connect(services, identity="test")


@pytest.fixture
async def load(
    client: Client, ledger: Ledger, blobs: BlobStore, connections: Database, fresh, tmp_path: Path
) -> AsyncIterator[Callable[..., object]]:
    """(name, its `load_weights` or None for an engine that hangs)… to what came of loading on all of them."""
    run, register = fresh(), Engines(connections)
    stores = Stores(ledger, blobs, actor="control:t")
    runs = RunActivities(stores, register, Sealer(stores, SigningKeys(tmp_path)))
    async with AsyncExitStack() as open_workers:

        async def start(**engines: Callable[..., object] | None) -> Loaded:
            queue = f"loading-{run}"
            runner = UnsandboxedWorkflowRunner()
            build = build_id()  # the queue is served by the build that decides, once any test had a control worker
            await open_workers.enter_async_context(
                Worker(
                    client,
                    task_queue=CONTROL_QUEUE,
                    activities=[runs.list_engines],
                    deployment_config=deployment_config(build),
                )
            )
            await take_over(client, build, again=True)
            await open_workers.enter_async_context(
                Worker(client, task_queue=queue, workflows=[Loading], workflow_runner=runner)
            )
            for name, load_weights in engines.items():
                own = f"engine-{run}-{name}"
                await register.register(f"{run}-{name}", run, "http://nowhere", own, secret="s", ttl_s=50)
                if load_weights is not None:
                    await open_workers.enter_async_context(Worker(client, task_queue=own, activities=[load_weights]))
            return await client.execute_workflow(Loading.run, run, id=str(uuid.uuid4()), task_queue=queue)

        yield start


async def test_engines_that_attest_are_all_waited_for(load) -> None:
    loaded = await load(a=engine("a"), b=engine("b"))
    assert loaded.engines == ["a", "b"]
    assert loaded.seconds < LATE.total_seconds()


async def test_an_engine_that_hangs_holds_the_others_up_for_seconds(load) -> None:
    loaded = await load(a=engine("a"), b=None, c=engine("c"))
    assert loaded.engines == ["a", "c"]
    assert loaded.seconds < 3 * LATE.total_seconds()


async def test_engines_that_fail_are_asked_again(load) -> None:
    loaded = await load(a=engine("a", failures=2))
    assert loaded.engines == ["a"]
