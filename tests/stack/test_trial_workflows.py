"""Workflows of benchmark trials on the real server: their order, what a lost host does, what is given up."""

import itertools

import pytest
import pytest_asyncio
from temporalio.client import Client

from stepwell.contracts.trial import RunSetEnd, RunSetInput, RunSetPlan
from tests.stack.played_trials import PLAN, PlayedTrials
from workers.runtime import connect
from workers.services.addresses import Addresses
from workflows.ids import run_set_id
from workflows.run_set import RunSet

pytestmark = pytest.mark.timeout(120)

_NUMBER = itertools.count(1)


@pytest_asyncio.fixture
async def client(services: Addresses) -> Client:
    """Of the session's server."""
    return await connect(services, identity="test")


async def run(client: Client, played: PlayedTrials, *, concurrency: int = 2, per_history: int = 50) -> RunSetEnd:
    """A run set of the played trials to its end."""
    name = f"played-{next(_NUMBER)}"
    plan = RunSetPlan(concurrency=concurrency, trials_per_history=per_history, trial=PLAN)
    async with played.served(client, name):
        return await client.execute_workflow(
            RunSet.run, RunSetInput(run_set=name, plan=plan), id=run_set_id(name), task_queue=name
        )


def of(played: PlayedTrials, cell: str) -> list[str]:
    """What was asked for a trial, in order."""
    return [asked.split()[0] for asked in played.asked if asked.split()[1] == cell]


IN_ORDER = ["test", "agent", "submission", "identity", "contamination", "judges"]


async def test_a_trial_goes_through_its_phases_and_a_reference_is_scored_alone(client: Client) -> None:
    played = PlayedTrials(("base.m.b.0", "a.m.b.0"))
    end = await run(client, played)
    assert end == RunSetEnd(scored=2, abandoned=())
    assert of(played, "base.m.b.0") == ["fold", "score", "close"]
    assert of(played, "a.m.b.0") == ["fold", "prepare", *IN_ORDER, "score", "close"]
    assert played.finished


async def test_a_trial_whose_host_died_starts_again_from_its_start(client: Client) -> None:
    played = PlayedTrials(("a.m.b.0",), faults={"agent a.m.b.0": 1, "judges a.m.b.0": 1})
    assert await run(client, played) == RunSetEnd(scored=1, abandoned=())
    expected = ["fold", "prepare", "test", "agent", "restart", "prepare", *IN_ORDER, "restart", "prepare", *IN_ORDER]
    assert of(played, "a.m.b.0") == [*expected, "score", "close"]


async def test_a_host_whose_queue_nobody_serves_is_lost(client: Client) -> None:
    played = PlayedTrials(("a.m.b.0",), hosts={"a.m.b.0": "nobody"})
    assert await run(client, played) == RunSetEnd(scored=1, abandoned=())
    assert of(played, "a.m.b.0") == ["fold", "prepare", "restart", "prepare", *IN_ORDER, "score", "close"]


async def test_a_trial_whose_hosts_die_beyond_the_budget_is_given_up_and_the_others_go_on(client: Client) -> None:
    played = PlayedTrials(("a.m.b.0", "b.m.b.0"), faults={"agent a.m.b.0": 3})
    assert await run(client, played) == RunSetEnd(scored=1, abandoned=("a.m.b.0",))
    assert of(played, "a.m.b.0").count("restart") == PLAN.host_restarts
    assert of(played, "a.m.b.0")[-1] == "abandon"
    assert not played.finished


async def test_infrastructure_that_fails_is_tried_again_and_then_given_up_without_a_score(client: Client) -> None:
    played = PlayedTrials(("a.m.b.0",), broken={"identity a.m.b.0"})
    assert await run(client, played) == RunSetEnd(scored=0, abandoned=("a.m.b.0",))
    assert of(played, "a.m.b.0").count("identity") == PLAN.attempts
    assert "close a.m.b.0" not in played.asked


async def test_trials_are_bounded_in_number_across_the_workflow_s_histories(client: Client) -> None:
    cells = tuple(f"a.m.b.{number}" for number in range(7))
    played = PlayedTrials(cells, broken={"score a.m.b.1"})
    end = await run(client, played, concurrency=2, per_history=2)
    assert end == RunSetEnd(scored=6, abandoned=("a.m.b.1",))
    assert played.most_running <= 2
    assert [of(played, cell).count("fold") for cell in cells] == [1] * 7


async def test_a_run_set_that_is_over_does_nothing_again(client: Client) -> None:
    played = PlayedTrials(("a.m.b.0",), scored=["a.m.b.0"], finished=True)
    assert await run(client, played) == RunSetEnd(scored=1, abandoned=())
    assert played.asked == []
