"""What counts as a stall, and what of it is recorded."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.events import StallBegan, StallEnded
from stepwell.health.fold import Health, RecordedStall
from stepwell.health.stalls import (
    SAME_S,
    LastSeen,
    Pending,
    Present,
    Trouble,
    absence,
    allowance_s,
    broken_workflow,
    changes,
    idleness,
    repeated_failure,
    trouble_of_groups,
    troubles_of,
    unready_engines,
    works,
)

WORKS = Pending("1/1", "train_step", "trainer", working=True, attempt=1, since_s=20.0, failure="", failed_s=0.0)
FAILS = replace(WORKS, working=False, attempt=4, failure="NonFinite: the loss is nan", failed_s=2.0)
WAITS = replace(WORKS, working=False, since_s=40.0)
ROLLOUT = Pending("2/1", "run_rollout", "sandbox", working=True, attempt=1, since_s=90.0, failure="", failed_s=0.0)
ALL = {"trainer": Present(1, 900.0), "engine": Present(1, 900.0), "sandbox": Present(2, 900.0)}


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (None, "none has been seen"),
        (LastSeen("host/7", 12.2), "the last one, host/7, was seen 12 s ago"),
    ],
)
def test_an_absence_says_who_was_there_last_and_what_to_start(last: LastSeen | None, words: str) -> None:
    trouble = absence("engine", "micro-1", last, 50.0)
    assert words in trouble.cause
    assert "start one: stepwell worker engine --run micro-1" in trouble.cause
    assert trouble.since_s == (50.0 if last is None else 12.2)


def test_a_worker_that_was_there_lately_is_missed_sooner_than_one_that_never_came() -> None:
    assert allowance_s(LastSeen("host/7", 20.0)) < allowance_s(None) == allowance_s(LastSeen("host/7", 3600.0))


def test_an_activity_that_fails_again_and_again_is_told_with_its_last_failure() -> None:
    (trouble,) = troubles_of([FAILS], ALL)
    assert trouble == Trouble("train_step", "train_step failed 3 times, last with: NonFinite: the loss is nan", 2.0)


def test_several_of_one_kind_are_told_as_one_with_the_most_common_failure() -> None:
    others = [replace(FAILS, failure="out of memory")] * 2
    (trouble,) = troubles_of([FAILS, *others], ALL)
    assert trouble.cause == "train_step failed 3 times, 3 at once, last with: out of memory"


@pytest.mark.parametrize(
    "fine",
    [
        WORKS,
        replace(FAILS, attempt=2),
        replace(FAILS, working=True, since_s=70.0),
        replace(WAITS, since_s=5.0),
        replace(WAITS, attempt=2, failure="heartbeat timeout"),
    ],
    ids=["works", "failed once", "works since it failed", "waits for a moment", "its next try is due"],
)
def test_what_may_well_succeed_is_no_stall(fine: Pending) -> None:
    assert troubles_of([fine], ALL) == []


def test_waiting_for_a_worker_is_told_if_there_is_one_that_could() -> None:
    (trouble,) = troubles_of([WAITS], ALL)
    assert trouble.what == "train_step"
    assert "waited 40 s for a trainer worker to take it up (1 alive, busy or stuck)" in trouble.cause
    assert troubles_of([WAITS], {"sandbox": Present(1, 900.0)}) == []  # that there is no trainer is told already
    assert troubles_of([WAITS], {"trainer": Present(1, 5.0)}) == []  # it has just come


def test_groups_on_which_somebody_works_are_fine() -> None:
    waiting = replace(ROLLOUT, working=False)
    assert trouble_of_groups([ROLLOUT, waiting, waiting], ALL) is None
    assert trouble_of_groups([], ALL) is None


def test_groups_that_all_wait_are_told_by_the_oldest() -> None:
    waiting = [replace(ROLLOUT, working=False, since_s=seconds) for seconds in (31.0, 48.0)]
    trouble = trouble_of_groups(waiting, ALL)
    assert trouble is not None
    assert trouble.cause.startswith("2 × run_rollout have waited 48 s for a sandbox worker")
    assert trouble_of_groups(waiting, {}) is None


def test_groups_that_fail_are_told_by_the_most_common_failure() -> None:
    failing = replace(ROLLOUT, working=False, attempt=3, failure="no space left", failed_s=1.0)
    trouble = trouble_of_groups([ROLLOUT, failing, replace(failing, failure="other"), failing], ALL)
    assert trouble is not None
    assert trouble.cause == "run_rollout failed 2 times, 3 at once of 4 open, last with: no space left"


def test_an_attempt_that_has_just_begun_proves_no_work() -> None:
    assert works([WORKS], set())
    assert not works([replace(WORKS, since_s=2.0)], set())
    assert not works([WORKS], {"train_step"})
    assert works([replace(WORKS, since_s=70.0)], {"train_step"})


def test_an_attempt_after_one_whose_worker_died_proves_itself_soon() -> None:
    retaken = replace(WORKS, attempt=2, failure="activity Heartbeat timeout")
    assert works([retaken], set())
    assert not works([replace(retaken, attempt=3)], set())


def test_an_idle_run_is_told_by_what_failed_or_by_its_own_word() -> None:
    assert repeated_failure("load_weights", "out of memory", 50.0) == Trouble(
        "load_weights", "load_weights is asked for again and again, and fails: out of memory", 50.0
    )
    told = idleness(50.0, "engines to load version 3")
    assert (told.what, "it waits for engines to load version 3" in told.cause) == ("workflow", True)


def test_engines_that_are_there_and_prove_nothing_are_told() -> None:
    assert unready_engines(Present(1, 60.0), 47.2).cause.startswith("1 engine worker is alive, none has proven a")
    assert unready_engines(Present(2, 60.0), 47.2).cause.startswith("2 engine workers are alive, none has proven a")


def test_a_workflow_task_that_keeps_failing_is_told() -> None:
    assert broken_workflow(2, "nondeterminism") is None
    broken = broken_workflow(3, "nondeterminism")
    assert broken is not None
    assert "its task failed 2 times, last with: nondeterminism" in broken.cause


def test_a_cause_that_differs_only_in_numbers_is_the_same_stall() -> None:
    standing = [RecordedStall(0, "trainer", "a/7 was seen 12 s ago", began_s=0.0)]
    same = changes(standing, [Trouble("trainer", "a/7 was seen 600 s ago", 600.0)], now_s=600.0)
    assert (same.ended, same.begun) == ((), ())


def test_another_cause_is_another_stall_but_not_every_few_seconds() -> None:
    standing = [RecordedStall(0, "train_step", "out of memory", began_s=0.0)]
    other = Trouble("train_step", "no connection", 1.0)
    assert changes(standing, [other], now_s=SAME_S / 2).begun == ()
    later = changes(standing, [other], now_s=SAME_S)
    assert (later.ended, later.begun) == (tuple(standing), (other,))


TROUBLES = st.lists(
    st.builds(Trouble, st.sampled_from("abcd"), st.sampled_from(["x", "y", "z"]), st.just(1.0)),
    unique_by=lambda trouble: trouble.what,
)


@settings(deadline=None)
@given(looks=st.lists(st.tuples(TROUBLES, st.floats(0.5, 100.0))))
def test_after_each_look_the_ledger_has_what_was_found_and_nothing_is_recorded_twice(
    looks: list[tuple[list[Trouble], float]],
) -> None:
    health, now_s = Health(), 0.0
    for found, passed_s in looks:
        now_s += passed_s
        changed = changes(health.standing, found, now_s)
        for stall in changed.ended:
            health.see(StallEnded(number=stall.number, lasted_s=now_s - stall.began_s), now_s)
        for trouble in changed.begun:
            number = len(health.stalls)
            began = StallBegan(number=number, what=trouble.what, cause=trouble.cause, noticed_after_s=trouble.since_s)
            health.see(began, now_s)
        assert sorted(stall.what for stall in health.standing) == sorted(trouble.what for trouble in found)
        assert [stall.number for stall in health.stalls] == list(range(len(health.stalls)))
        again = changes(health.standing, found, now_s)
        assert (again.ended, again.begun) == ((), ())
