"""Histories go into the store once each, whoever sweeps, and tell when a workflow has changed its mind."""

import asyncio
import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from temporalio import workflow
from temporalio.client import Client

import workers.history_sweeper
from activities.stores import Stores
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from stepwell.contracts.rollout import GroupInput
from stepwell.events import HistoryArchived, RunCreated
from tests.told import told
from workers.history_replay import HistoryReplay, is_whole, replay_histories
from workers.history_sweeper import HistorySweeper
from workers.runtime import connect
from workers.services.addresses import Addresses
from workflows.ids import group_id, run_id
from workflows.registered import WORKFLOWS
from workflows.training_run import TrainingRun
from workflows.validation import Validation


@pytest.fixture
async def client(services: Addresses) -> Client:
    return await connect(services, identity="test")


@pytest.fixture
def stores(ledger: Ledger, blobs: BlobStore) -> Stores:
    return Stores(ledger, blobs, "control:test/1")


@pytest.fixture
async def run(ledger: Ledger, fresh: Callable[[], str]) -> str:
    """A run that the ledger knows."""
    name = fresh()
    await ledger.append(f"run/{name}", [told(RunCreated, recipe={})], expected_seq=0, actor="control:test/1")
    return name


async def closed(client: Client, workflow_id: str) -> str:
    """A workflow that nobody served and somebody ended; the id of its execution."""
    handle = await client.start_workflow("TrainingRun", id=workflow_id, task_queue=f"nobody-{uuid.uuid4().hex}")
    await handle.terminate("the test is over")
    return handle.result_run_id or ""


async def listed(client: Client, run: str, count: int) -> None:
    """Waits until Temporal lists so many workflows of a run as closed."""
    query = f"WorkflowId STARTS_WITH 'stepwell/{run}' AND ExecutionStatus != 'Running'"
    while True:
        if len([found async for found in client.list_workflows(query)]) >= count:
            return
        await asyncio.sleep(0.05)


async def archived(ledger: Ledger, run: str) -> list[HistoryArchived]:
    events = [each.event for each in await ledger.read(f"history/{run}")]
    return [event for event in events if isinstance(event, HistoryArchived)]


async def test_two_sweepers_at_once_archive_each_history_once(
    client: Client, stores: Stores, ledger: Ledger, run: str
) -> None:
    executions = [await closed(client, group_id(run, "0", prompt)) for prompt in range(3)]
    await listed(client, run, 3)
    await asyncio.gather(*(HistorySweeper(client, stores).sweep() for _ in range(2)))
    found = await archived(ledger, run)
    assert sorted(each.execution for each in found) == sorted(executions)
    assert {(each.kind, each.status) for each in found} == {("TrainingRun", "terminated")}


async def test_a_sweeper_that_knows_nothing_goes_on_where_another_was_killed(
    client: Client, stores: Stores, ledger: Ledger, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await HistorySweeper(client, stores).sweep()  # what other tests have left
    for prompt in range(3):
        await closed(client, group_id(run, "0", prompt))
    await listed(client, run, 3)
    monkeypatch.setattr(workers.history_sweeper, "BATCH", 1)
    sweeping = asyncio.create_task(HistorySweeper(client, stores).sweep(rest=1000.0))
    begun: list[HistoryArchived] = []
    while not begun:
        begun = await archived(ledger, run)
        await asyncio.sleep(0.02)
    sweeping.cancel()
    await asyncio.wait([sweeping])
    begun = await archived(ledger, run)
    assert 0 < len(begun) < 3
    await HistorySweeper(client, stores).sweep()
    whole = await archived(ledger, run)
    assert whole[: len(begun)] == begun
    assert len({each.execution for each in whole}) == len(whole) == 3


async def test_what_closes_later_is_archived_by_the_next_sweep(
    client: Client, stores: Stores, ledger: Ledger, run: str
) -> None:
    sweeper = HistorySweeper(client, stores)
    await closed(client, group_id(run, "0", 0))
    await listed(client, run, 1)
    await sweeper.sweep()
    assert not is_whole(run, await archived(ledger, run))
    await closed(client, run_id(run))
    await listed(client, run, 2)
    await sweeper.sweep()
    assert [each.workflow for each in await archived(ledger, run)] == [group_id(run, "0", 0), run_id(run)]
    assert is_whole(run, await archived(ledger, run))


async def test_a_worker_that_ends_while_the_database_is_away_leaves_its_histories_to_the_next(
    client: Client, blobs: BlobStore, run: str, unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    await closed(client, group_id(run, "0", 0))
    await listed(client, run, 1)
    away = Database(f"postgresql://nobody@127.0.0.1:{unused_tcp_port}/none")
    try:
        await HistorySweeper(client, Stores(Ledger(away), blobs, "control:test/1")).last_word()
    finally:
        await away.close()
    assert "histories are left to the next control worker" in caplog.text


async def test_workflows_of_another_ledger_are_left_alone(
    client: Client, stores: Stores, ledger: Ledger, run: str, fresh: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = fresh()
    for name in (unknown, run):
        await closed(client, run_id(name))
        await listed(client, name, 1)
    monkeypatch.setattr(workers.history_sweeper, "CLOCKS_APART", -timedelta(hours=1))
    await HistorySweeper(client, stores).sweep()
    assert await archived(ledger, unknown) == []
    assert await archived(ledger, run) == [], "it began before the run was created"


@workflow.defn(name="PromptGroup")
class AnotherPromptGroup:
    """Decides otherwise: it sleeps first."""

    @workflow.run
    async def run(self, group: GroupInput) -> None:
        await workflow.sleep(1)


async def replays(blobs: BlobStore, ledger: Ledger, workflows: tuple[type, ...]) -> list[HistoryReplay]:
    found = await archived(ledger, "undisturbed")
    return [each async for each in replay_histories(blobs, found, workflows)]


async def test_a_workflow_that_changed_its_mind_is_found_with_the_reason(
    undisturbed: dict[str, object], ledger: Ledger, blobs: BlobStore
) -> None:
    found = await replays(blobs, ledger, (TrainingRun, AnotherPromptGroup, Validation))
    failed = [each for each in found if each.failure]
    assert {each.archived.kind for each in failed} == {"PromptGroup"}
    assert len(failed) == sum(each.archived.kind == "PromptGroup" for each in found)
    assert all("NondeterminismError" in each.failure for each in failed)
    assert not [each for each in await replays(blobs, ledger, WORKFLOWS) if each.failure]


async def test_a_history_that_is_damaged_or_missing_is_named(
    undisturbed: dict[str, object], ledger: Ledger, blobs: BlobStore
) -> None:
    found = await archived(ledger, "undisturbed")
    garbled = (await blobs.put(b"no history")).digest
    lies = [
        found[0].model_copy(update={"history": garbled}),
        found[1].model_copy(update={"history": "0" * 64}),
        found[2].model_copy(update={"events": 1}),
        found[3],
    ]
    told_of = [each async for each in replay_histories(blobs, lies)]
    assert [each.archived for each in told_of] == [lies[3], *lies[:3]]
    assert told_of[0].failure == ""
    said = [each.failure for each in told_of[1:]]
    assert f"blob {garbled} is no history" in said[0]
    assert "is not stored" in said[1]
    assert "events, 1 were archived" in said[2]
