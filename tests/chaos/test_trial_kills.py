"""The trial worker killed in each phase of a trial, right before and right after each append, and as each phase begins.

The trial comes to the same facts and the same record as an undisturbed one, its agent runs once, and no agent is left.
A killed host is another matter: see tests/stack/test_trials.py.
"""

import pytest

from tests.chaos.table import SAME, ChaosTable, Row
from tests.chaos.trial_kills import PHASES, Played, at_every_attempt, at_every_record, next_event_s, play
from tests.stack.small_trials import SmallTrials
from workers.trial_agents import end_agents

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

CHAPTER = "A benchmark trial: several kills in one"
KILLS = {
    "before": at_every_record("before"),
    "after": at_every_record("after"),
    "begun": at_every_attempt(),
}
ATTEMPTS = 20
"""At one phase, before the trial is given up: several kills hit it, and each takes an attempt."""


@pytest.mark.parametrize("which", KILLS)
async def test_a_trial_whose_worker_is_killed_in_each_phase_comes_to_the_same(
    small_trials: SmallTrials, superuser: str, chaos_table: ChaosTable, which: str
) -> None:
    recipe = small_trials.write("honest")
    recipe.write_text(recipe.read_text().replace("attempts = 3", f"attempts = {ATTEMPTS}"))
    undisturbed = await play(small_trials, recipe, f"quiet-{which}", superuser)
    disturbed = await play(small_trials, recipe, f"struck-{which}", superuser, KILLS[which])
    chaos_table.add(*rows(undisturbed, disturbed))
    struck = [kill for kill, _ in disturbed.struck]
    if which == "begun":
        assert [kill.phase for kill in struck] == list(PHASES)
    else:
        assert struck == KILLS[which]
    assert disturbed.came == undisturbed.came
    assert end_agents("the test is over", small_trials.home) == []
    assert list((small_trials.home / "evaluations").glob(f"{small_trials.name}/*")) == []


def rows(undisturbed: Played, disturbed: Played) -> list[Row]:
    """Of the table, one for each kill: they share the outcome."""
    same = disturbed.came == undisturbed.came
    return [
        Row(
            chapter=CHAPTER,
            fault=str(kill),
            process="trial",
            signal="SIGKILL",
            outcome=SAME if same else "another trial",
            recovery_s=next_event_s(disturbed, at),
        )
        for kill, at in disturbed.struck
    ]
