"""How forged tasks are dealt to the sets of a run with a warm-up."""

from pathlib import Path
from typing import Any

import pytest

from stepwell.recipe.loading import RecipeError, load_recipe, resolve
from stepwell.recipe.recipe import Recipe
from stepwell.recipe.sections import PackageTasks
from stepwell.tasks.forge import TaskSet
from stepwell.tasks.manifest import TaskEntry, TaskManifest
from stepwell.tasks.packages import NotEnoughTasks
from stepwell.tasks.place import place_in
from stepwell.tasks.set_file import BrokenSetFile, write_set
from stepwell.tasks.task import Origin, Split, Task
from tests.warmed_recipe import warmed_recipe
from workers.task_sets import TaskSets, make_task_sets, package_sets

SMOLLM2 = Path(__file__).parents[2] / "recipes" / "smollm2.toml"


KINDS = ("sign_lost", "raise_removed")


def origin_of(package: str, number: int) -> Origin:
    return Origin(
        package=package,
        version="1",
        sha256="0",
        licence="MIT",
        kind=KINDS[number % 2],
        path="a.py",
        function="f",
        line=2,
        function_lines=2,
        package_lines=2,
        package_files=1,
        covering_tests=1,
        failing_tests=1,
    )


def tasks_of(split: Split, count: int, family: str = "inflection") -> tuple[Task, ...]:
    return tuple(
        Task(
            id=f"{family}/{split}/{number}",
            family=family,
            origin=origin_of(family, number),
            split=split,
            difficulty=1,
            issue="It is broken.",
            files={"a.py": "a = 1\nb = 2\n"},
            hidden={},
            gold={"a.py": "a = 1\nb = 3\n"},
            grader="calls",
            expected=(),
        )
        for number in range(count)
    )


def sets_of(**sections: dict[str, Any]) -> TaskSets:
    recipe: Recipe = resolve(warmed_recipe(Path("/nowhere"), **sections), source="a test")
    assert isinstance(recipe.tasks, PackageTasks)
    forged = TaskSet(
        tasks_of("train", recipe.tasks.train + 2), tasks_of("validation", 3), (), tasks_of("heldout_family", 2)
    )
    return package_sets(recipe, recipe.tasks, forged)


def test_what_is_demonstrated_is_taken_evenly_out_of_the_training_tasks_and_not_trained_again() -> None:
    warm_up = {"tasks": 4, "steps": 1, "optimiser": {"learning_rate": 1e-3}}
    sets = sets_of(policy={"warm_up": warm_up}, tasks={"train": 10}, run={"max_steps": 4}, failures={"reserve": 1})
    demonstrated, trained = ({task.id for task in tasks} for tasks in (sets.demonstrated, (*sets.train, *sets.reserve)))
    assert (len(sets.demonstrated), len(sets.reserve), len(sets.train)) == (4, 1, 4)
    assert not demonstrated & trained
    assert {task.split for task in (*sets.demonstrated, *sets.train, *sets.reserve)} == {"train"}
    numbers = [int(task.id.rpartition("/")[2]) for task in sets.demonstrated]
    assert numbers == sorted(numbers)
    assert numbers[0] < 3
    assert numbers[-1] > 7


def test_every_issue_names_lines_where_the_recipe_asks_for_it() -> None:
    for task in (*(sets := sets_of()).train, *sets.demonstrated, *sets.main, *sets.heldout):
        assert place_in(task.issue).path == "/work/a.py"
    table = {"source": "package", "packages": ["inflection"], "train": 3, "place_lines": None}
    for task in sets_of(tasks=table, policy={"warm_up": None}).main:
        assert task.issue == "It is broken."


async def test_a_run_takes_the_tasks_of_its_packages_and_kinds_out_of_a_forged_set(tmp_path: Path) -> None:
    held_out = tasks_of("heldout_family", 4, "xmltodict")
    others = (*tasks_of("train", 4, "toolz"), *tasks_of("heldout_family", 4, "cachetools"))
    with (tmp_path / "set.jsonl").open("w") as file:
        write_set((*others, *tasks_of("train", 8), *tasks_of("validation", 4), *held_out), file)
    keys = {"path": str(tmp_path / "set.jsonl"), "kinds": ["sign_lost"], "held_out": ["xmltodict"]}
    table = warmed_recipe(tmp_path, tasks=keys, validation={"tasks": 2, "heldout_tasks": 2}, run={"max_steps": 2})
    sets = await make_task_sets(resolve(table, source="a test"))
    assert [task.id for task in sets.main] == ["inflection/validation/0", "inflection/validation/2"]
    assert [task.id for task in sets.heldout] == ["xmltodict/heldout_family/0", "xmltodict/heldout_family/2"]
    assert {task.family for task in (*sets.train, *sets.demonstrated)} == {"inflection"}
    assert {task.origin.kind for task in (*sets.train, *sets.demonstrated) if task.origin} == {"sign_lost"}
    table["tasks"]["train"] = 5
    with pytest.raises(NotEnoughTasks, match=r"5 tasks are asked for by tasks\.train, the packages give 4"):
        await make_task_sets(resolve(table, source="a test"))
    table["tasks"]["path"] = str(tmp_path / "nowhere.jsonl")
    with pytest.raises(BrokenSetFile, match="nowhere"):
        await make_task_sets(resolve(table, source="a test"))


def test_a_manifest_without_demonstrations_is_stored_as_before_there_were_any() -> None:
    bare = TaskManifest(train=(), main=(), confirm=(), heldout=())
    assert b"demonstrated" not in bare.blob()
    shown = bare.model_copy(update={"demonstrated": (TaskEntry(id="a", blob="b"),)})
    assert TaskManifest.model_validate_json(shown.blob()) == shown


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("tasks.kinds=['sign_loss']", ["tasks", "no kind of defect 'sign_loss'", "did you mean 'sign_lost'"]),
        ("tasks.kinds=[]", ["tasks.kinds", "at least 1"]),
        ("tasks={source='package', packages=['h11'], train=9, path='x', seed=1}", ["seed would do nothing", "path"]),
        ("tasks.place_lines=0", ["tasks.place_lines", "greater than or equal to 1"]),
        ("policy.warm_up.step=3", ["policy.warm_up.step: unknown key", "did you mean 'steps'"]),
        ("policy.warm_up.steps=0", ["policy.warm_up.steps", "greater than or equal to 1"]),
        (
            "policy.warm_up.optimiser={learning_rate=1e-4, decay_steps=3}",
            ["policy.warm_up.optimiser", "would do nothing"],
        ),
        ("policy.warm_up.tasks=1000", ["policy.warm_up.tasks is 1000", "left to train on"]),
        ("agent.functions=['execute_bash', 'finish']", ["demonstrates str_replace_editor", "agent.functions"]),
        ("agent.functions=['bash']", ["agent.functions", "'bash'"]),
        ("agent.functions=[]", ["agent.functions", "at least 1"]),
        ("agent.prompt=none", ["agent.prompt", "'schemas'"]),
        ("agent.max_turns=2", ["agent.max_turns is 2", "3 turns"]),
        ("tasks={source='forged'}", ["policy.warm_up would demonstrate nothing", "tasks.place_lines"]),
        ("agent.harness=['/bin/true']", ["would do nothing", "harness"]),
    ],
)
def test_a_warm_up_that_would_do_nothing_is_refused(setting: str, said: list[str]) -> None:
    with pytest.raises(RecipeError) as refused:
        load_recipe(SMOLLM2, [setting])
    for part in said:
        assert part in str(refused.value)


def test_a_harness_of_its_own_is_not_warmed_up() -> None:
    agent = {"harness": ["/bin/true"], "functions": None, "prompt": None}
    with pytest.raises(RecipeError, match="would teach another harness"):
        resolve(warmed_recipe(Path("/nowhere"), agent=agent), source="a test")


def test_keys_of_the_prompt_are_for_codeact() -> None:
    for key, value in (("functions", ["finish"]), ("prompt", "examples")):
        with pytest.raises(RecipeError, match=rf"{key} would do nothing: it is for tools"):
            load_recipe(SMOLLM2.with_name("micro.toml"), [f"agent.{key}={value!r}"])
