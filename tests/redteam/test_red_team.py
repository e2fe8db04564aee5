"""No cheat gets anything, each gets a reason that says how it was found out, and honest work gets 1."""

from collections.abc import AsyncIterator

import pytest

from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Score
from tests.redteam.page import PAGE, facts, read_facts, wanted_page, write
from tests.redteam.red_team import Found, With, cheats, honest, left_by, repaired, try_all
from tests.redteam.tasks import Grader, TestsForm, task_for

pytestmark = pytest.mark.timeout(1800)  # The first test waits for all cheats to be tried.
TIMEOUT_S = 300.0


@pytest.fixture(scope="module")
async def factory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BubblewrapFactory]:
    made = BubblewrapFactory(tmp_path_factory.mktemp("sandboxes"))
    yield made
    await made.close()


@pytest.fixture(scope="module")
async def found(factory: BubblewrapFactory) -> list[Found]:
    rows = await try_all(cheats(), factory)
    if (page := wanted_page()) is not None:
        write(page, rows)
    return rows


def test_there_are_enough_cheats_and_no_two_have_one_name() -> None:
    names = [cheat.name for cheat in cheats()]
    assert len(names) >= 40
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", [cheat.name for cheat in cheats()])
def test_a_cheat_gets_0_and_a_reason_that_says_how_it_was_found_out(found: list[Found], name: str) -> None:
    for one in found:
        if one.cheat.name == name:
            assert one.score == 0.0, (one.grader, one.reason)
            assert one.caught in one.cheat.caught.split("|"), (one.grader, one.reason)


@pytest.mark.parametrize("grader", ["calls", "pytest"])
@pytest.mark.parametrize("extra", honest(), ids=lambda one: one.name)
async def test_honest_work_gets_1_whatever_is_with_it(factory: BubblewrapFactory, extra: With, grader: Grader) -> None:
    changed = await left_by(extra, factory, repaired(extra.appended))
    verdict = await grade(task_for("plain", grader, TIMEOUT_S), changed, factory)
    assert isinstance(verdict, Score)
    assert verdict.value == 1.0, verdict.report


@pytest.mark.parametrize("form", ["two files", "unittest"])
async def test_honest_work_gets_1_in_every_form_of_the_tests(factory: BubblewrapFactory, form: TestsForm) -> None:
    verdict = await grade(task_for(form, "pytest", TIMEOUT_S), {**repaired("")}, factory)
    assert isinstance(verdict, Score)
    assert verdict.value == 1.0, verdict.report


def test_the_page_says_what_is_so(found: list[Found]) -> None:
    assert read_facts(PAGE.read_text(encoding="utf-8")) == facts(found), "run `make redteam`"
