"""A rollout taken up in a real sandbox: recorded actions run again; where they do something else, it starts over."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.engine_pool import LOOK_S
from stepwell.events import AttemptOpened, RolloutEnded, RolloutRestarted, TurnRecorded
from stepwell.policy.micro.shipped import FOLDER
from stepwell.recipe.loading import load_recipe
from tests.stack.rollout_stage import Backstage, Stage, small_task
from tests.stack.scripted_engine import ScriptedEngine

RECIPE = Path(__file__).parents[2] / "recipes" / "micro.toml"
RANDOM = 'def test_it():\n    import os\n    open("left", "wb").write(os.urandom(8))\n'
REPEATABLE = RANDOM.replace("os.urandom(8)", "bytes(8)")


@pytest.fixture
def stage(backstage: Backstage):
    def opened(test: str) -> AbstractAsyncContextManager[Stage[ScriptedEngine]]:
        task = small_task(**{"test_app.py": test})
        return backstage.open(load_recipe(RECIPE), FOLDER, task, ScriptedEngine())

    return opened


async def test_a_repeatable_rollout_goes_on_after_its_last_recorded_turn(stage) -> None:
    async with stage(REPEATABLE) as on:
        await on.attempt("view", "test")
        await on.attempt("done")
        assert [type(event) for event in await on.events()] == [
            AttemptOpened,
            TurnRecorded,
            TurnRecorded,
            AttemptOpened,
            TurnRecorded,
            RolloutEnded,
        ]
        assert [turn.turn for turn in await on.turns()] == [0, 1, 2]
        first, second, third = on.engine.contexts
        assert third[: len(second)] == second
        assert second[: len(first)] == first


async def test_attempts_in_a_row_without_a_turn_use_the_budget_up(stage) -> None:
    async with stage(REPEATABLE) as on:
        budget = load_recipe(RECIPE).failures.rollout_attempts
        for _ in range(budget - 1):
            await on.attempt()
        await on.attempt("view")
        for _ in range(budget):
            await on.attempt()
        before = await on.events()
        with pytest.raises(ApplicationError, match=f"{budget} attempts recorded no turn") as refused:
            await on.attempt("done")
        assert refused.value.non_retryable
        assert await on.events() == before


async def test_a_rollout_whose_run_has_no_engine_is_tried_again_soon_at_no_cost(stage) -> None:
    async with stage(REPEATABLE) as on:
        await on.attempt("view")
        await on.take_engine_away()
        await asyncio.sleep(2 * LOOK_S)
        before = await on.events()
        with pytest.raises(ApplicationError, match=r"no engine of .* is alive") as refused:
            await on.attempt()
        assert not refused.value.non_retryable
        assert refused.value.next_retry_delay is not None
        assert await on.events() == before


async def test_an_action_that_does_something_else_when_it_is_run_again_starts_the_rollout_over(stage) -> None:
    async with stage(RANDOM) as on:
        await on.attempt("view", "test")
        await on.attempt("test", "done")
        kinds = [type(event) for event in await on.events()]
        assert kinds == [
            AttemptOpened,
            TurnRecorded,
            TurnRecorded,
            AttemptOpened,
            RolloutRestarted,
            TurnRecorded,
            TurnRecorded,
            RolloutEnded,
        ]
        restarted = next(event for event in await on.events() if isinstance(event, RolloutRestarted))
        assert (restarted.epoch, restarted.turn) == (1, 1)
        assert restarted.expected != restarted.found
        assert [(turn.epoch, turn.turn) for turn in await on.turns()] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        ended = (await on.events())[-1]
        assert isinstance(ended, RolloutEnded)
        assert (ended.epoch, ended.turns) == (1, 2), "only the turns of the last epoch count"
