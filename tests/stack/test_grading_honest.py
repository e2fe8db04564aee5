"""No false negative: the reference solution of every forged task gets 1, and doing nothing gets 0."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.forge import ForgeCounts, forge
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Score
from stepwell.tasks.task import Task

AT_ONCE = 4
TIMEOUT_S = 300.0
"""A slow machine is no failure of the grader."""
SAMPLE = ForgeCounts(train=8, validation=4, confirm=4, heldout_family=4)


@pytest.fixture(scope="module")
async def factory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BubblewrapFactory]:
    made = BubblewrapFactory(tmp_path_factory.mktemp("sandboxes"))
    yield made
    await made.close()


async def wrong_verdicts(tasks: Sequence[Task], factory: BubblewrapFactory, *, gold: bool) -> list[str]:
    """What was said of each task whose reference solution did not get 1, or whose fresh tree did not get 0."""
    room = asyncio.Semaphore(AT_ONCE)

    async def wrong(task: Task) -> str | None:
        async with room:
            changed = {path: text.encode() for path, text in task.gold.items()} if gold else {}
            verdict = await grade(task.model_copy(update={"timeout_s": TIMEOUT_S}), changed, factory)
        if isinstance(verdict, Score) and verdict.value == float(gold):
            return None
        return f"{task.id}: {verdict}"

    return [said for said in await asyncio.gather(*map(wrong, tasks)) if said is not None]


async def test_reference_solutions_get_1_and_nothing_gets_0(factory: BubblewrapFactory) -> None:
    tasks = list(forge(3, SAMPLE).every())
    assert await wrong_verdicts(tasks, factory, gold=True) == []
    assert await wrong_verdicts(tasks, factory, gold=False) == []


async def test_reference_solutions_get_1_under_pytest_too(factory: BubblewrapFactory) -> None:
    tasks = [task.model_copy(update={"grader": "pytest"}) for task in forge(4, SAMPLE).every()][::4]
    assert await wrong_verdicts(tasks, factory, gold=True) == []


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_every_reference_solution_of_the_forged_set_gets_1(factory: BubblewrapFactory) -> None:
    tasks = list(forge(1, ForgeCounts()).every())
    wrong = await wrong_verdicts(tasks, factory, gold=True)
    print(f"{len(tasks)} reference solutions, {len(wrong)} without a reward of 1")
    assert wrong == []
