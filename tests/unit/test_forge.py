"""Forged tasks: what holds of every task, and what keeps the splits apart."""

import ast
import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.events.canonical import digest_of_json
from stepwell.tasks.forge import ForgeCounts, TaskSet, forge, forged_task
from stepwell.tasks.forge.families import families
from stepwell.tasks.forge.generator import HIDDEN_PATH, VISIBLE_PATH
from stepwell.tasks.forge.trusted import TrustedTree
from stepwell.tasks.task import Split, Task

SMALL = ForgeCounts(train=400, validation=120, confirm=120, heldout_family=60)
SPLITS: tuple[Split, ...] = ("train", "validation", "confirm", "heldout_family")


@pytest.fixture(scope="module")
def task_set() -> TaskSet:
    return forge(7, SMALL)


def functions_of(task: Task) -> dict[str, str]:
    """Every function of the task's modules as the agent finds it: name to source."""
    sources = [text for path, text in task.files.items() if path.endswith(".py") and not path.startswith("tests/")]
    nodes = [node for source in sources for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.unparse(node) for node in nodes}


def defective_function(task: Task) -> str:
    """The function that the reference solution changes, under a neutral name."""
    before = functions_of(task)
    after = functions_of(task.model_copy(update={"files": {**task.files, **task.gold}}))
    changed = [name for name in before if before[name] != after[name]]
    assert len(changed) == 1
    return before[changed[0]].replace(changed[0], "f")


def failing_hidden_tests(task: Task, files: dict[str, str]) -> list[str]:
    outcome = TrustedTree({**files, **task.hidden}).failures(HIDDEN_PATH)
    assert sorted(f"{HIDDEN_PATH}::{name}" for name in outcome) == sorted(task.expected)
    return [name for name, error in outcome.items() if error is not None]


def test_there_are_at_least_thirty_families_to_train_on_and_six_held_out():
    assert len(families(heldout=False)) >= 30
    assert len(families(heldout=True)) >= 6
    names = [family.name for held in (False, True) for family in families(heldout=held)]
    assert len(names) == len(set(names))


def test_every_family_has_several_places_or_kinds_of_defect():
    for family in (*families(heldout=False), *families(heldout=True)):
        assert len(family.docs) >= 2, family.name
        assert sum(len(site.options) - 1 for site in family.sites()) >= 1, family.name


def test_hidden_tests_fail_with_the_defect_and_pass_without(task_set: TaskSet):
    for task in task_set.every():
        assert len(failing_hidden_tests(task, task.files)) >= 2, task.id
        assert failing_hidden_tests(task, {**task.files, **task.gold}) == [], task.id


def test_the_visible_test_fails_with_the_defect_and_passes_without(task_set: TaskSet):
    for task in task_set.every():
        assert list(TrustedTree(task.files).failures(VISIBLE_PATH).values()) != [None], task.id
        assert list(TrustedTree({**task.files, **task.gold}).failures(VISIBLE_PATH).values()) == [None], task.id


def test_the_issue_names_the_call_that_the_visible_test_makes(task_set: TaskSet):
    for task in task_set.every():
        call = task.files[VISIBLE_PATH].partition("assert ")[2].partition(" == ")[0]
        assert call in task.issue, task.id


def test_the_hidden_example_is_not_the_visible_one(task_set: TaskSet):
    for task in task_set.every():
        example = task.files[VISIBLE_PATH].partition("assert ")[2].partition(" == ")[0]
        assert f"assert {example} ==" not in task.hidden[HIDDEN_PATH], task.id


def test_the_reference_solution_enters_no_file_that_the_agent_sees(task_set: TaskSet):
    for task in task_set.every():
        assert set(task.hidden).isdisjoint(task.files)
        assert all(task.files[path] != text for path, text in task.gold.items())


def test_training_goes_from_easy_to_hard(task_set: TaskSet):
    difficulties = [task.difficulty for task in task_set.train]
    assert difficulties == sorted(difficulties)
    assert set(difficulties) >= {1, 2, 3}


def test_a_curriculum_keeps_the_order_and_spans_it(task_set: TaskSet):
    chosen = task_set.curriculum(40)
    places = [task_set.train.index(task) for task in chosen]
    assert places == sorted(set(places))
    assert {task.difficulty for task in chosen} >= {1, 2, 3}
    with pytest.raises(ValueError, match="401 training tasks were asked for, the set has 400"):
        task_set.curriculum(401)


def test_no_two_tasks_have_the_same_files_and_hidden_tests(task_set: TaskSet):
    contents = [digest_of_json({"files": task.files, "hidden": task.hidden}) for task in task_set.every()]
    assert len(contents) == len(set(contents))
    ids = [task.id for task in task_set.every()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("what", [defective_function, lambda task: set(functions_of(task))], ids=["defects", "names"])
def test_splits_share_neither_defective_functions_nor_function_names(task_set: TaskSet, what):
    def every(split: str) -> set[str]:
        values = [what(task) for task in getattr(task_set, split)]
        return set().union(*(value if isinstance(value, set) else {value} for value in values))

    for index, one in enumerate(SPLITS):
        for other in SPLITS[index + 1 :]:
            assert every(one).isdisjoint(every(other)), (one, other)


def test_splits_of_different_seeds_stay_apart():
    train = {defective_function(forged_task(1, "train", index)) for index in range(200)}
    validation = {defective_function(forged_task(2, "validation", index)) for index in range(200)}
    assert train.isdisjoint(validation)


def test_held_out_families_are_never_repaired_in_other_splits(task_set: TaskSet):
    held = {family.name for family in families(heldout=True)}
    assert {task.family for task in task_set.heldout_family} == held
    for split in SPLITS[:3]:
        assert held.isdisjoint(task.family for task in getattr(task_set, split))


def test_a_split_covers_its_families_evenly(task_set: TaskSet):
    counts = Counter(task.family for task in task_set.train)
    assert set(counts) == {family.name for family in families(heldout=False)}
    assert max(counts.values()) <= 2 * min(counts.values())


def test_more_tasks_of_a_split_keep_the_ones_there_were(task_set: TaskSet):
    more = forge(7, ForgeCounts(train=1, validation=130, confirm=0, heldout_family=0))
    assert more.validation[:120] == task_set.validation


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(SPLITS), st.integers(0, 10_000))
def test_a_task_depends_on_seed_split_and_index_alone(seed: int, split: Split, index: int):
    assert forged_task(seed, split, index).digest == forged_task(seed, split, index).digest


def test_tasks_do_not_depend_on_the_hash_seed():
    command = "from stepwell.tasks.forge import *; print(forge(3, ForgeCounts(train=30, validation=9)).digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", command],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1
