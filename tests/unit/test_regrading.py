"""Which gradings a regrade takes, and which steps other scores reach."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.audit.dispatched import AuditedStep, StepPrompt
from stepwell.audit.recipe import AuditedRecipe
from stepwell.audit.regrading import Regraded, Work, blast_radius, drawn, graded_work
from stepwell.audit.replaying.step_record import StepRecord, StreamRead, step_record
from stepwell.events import GroupClosed, GroupOpened, RolloutEnded, RolloutGraded, StepDispatched
from stepwell.events.base import Event
from stepwell.recipe.sections import RunSection
from tests.told import told

RECIPE = AuditedRecipe(run=RunSection(max_steps=1, prompts_per_step=1, samples_per_prompt=4))
SCORES = (1.0, 1.0, 0.0, 0.0)


def step() -> StepRecord:
    """A step of one prompt; its solved rollouts have one tree, the others one each."""
    keys = ("solved", "solved", "b", "c")
    streams: dict[str, list[Event]] = {
        f"rollout/r/0/0/{sample}": [
            told(RolloutEnded, verdict_key=key, changed=f"changed by {key}", tree=f"tree of {key}"),
            told(RolloutGraded, verdict_key=key, score=score),
        ]
        for sample, (key, score) in enumerate(zip(keys, SCORES, strict=True))
    }
    streams["prompt/r/0/0"] = [told(GroupOpened, samples=4), told(GroupClosed, scores=list(SCORES))]
    dispatched = told(StepDispatched, step=0, version=0, tasks=["the task"])
    audited = AuditedStep(1, dispatched, (), (StepPrompt("prompt/r/0/0", "the task", 1),))
    return step_record("r", audited, {name: StreamRead(events, "head") for name, events in streams.items()}, None, None)


def regraded(work: Work, score: float | None, *, timed_out: bool = False) -> Regraded:
    return Regraded(work, score, timed_out, report="", is_same_grader=True, tests={})


def test_each_tree_is_graded_once_for_all_rollouts_that_arrived_at_it() -> None:
    work = graded_work([step()])
    assert [(each.key, each.task, each.changed) for each in work] == [
        ("solved", "the task", "changed by solved"),
        ("b", "the task", "changed by b"),
        ("c", "the task", "changed by c"),
    ]
    assert work[0].places == ("rollout/0/0/0", "rollout/0/0/1")


@given(st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_a_sample_is_drawn_without_repetition_and_the_same_again(count: int, seed: int) -> None:
    work = graded_work([step()])
    found = drawn(work, count, seed)
    assert found == drawn(work, count, seed)
    assert len({each.key for each in found}) == len(found) == min(count, len(work))
    assert drawn(work, None, seed) == work


def test_the_blast_radius_is_the_steps_whose_advantages_change() -> None:
    solved, other, _ = graded_work([step()])
    assert blast_radius([step()], RECIPE, [regraded(solved, 1.0), regraded(other, 0.0)]) == []
    (found,) = blast_radius([step()], RECIPE, [regraded(solved, 0.0), regraded(other, 1.0)])
    assert found.step == 0
    assert {change.place for change in found.changes if change.flips} == {
        "rollout/0/0/0",
        "rollout/0/0/1",
        "rollout/0/0/2",
    }


def test_tests_that_are_cut_off_now_mask_their_rollouts() -> None:
    (found,) = blast_radius([step()], RECIPE, [regraded(graded_work([step()])[1], 0.0, timed_out=True)])
    assert [change.other_mask for change in found.changes if change.is_masked] == ["grading_timeout"]


@pytest.mark.parametrize(("score", "differs"), [(1.0, False), (0.0, True), (None, False)])
def test_work_that_could_not_be_graded_has_no_other_verdict(score: float | None, differs: bool) -> None:
    assert regraded(graded_work([step()])[0], score).differs is differs
