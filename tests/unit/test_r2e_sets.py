"""A recipe names an imported set; what of it trains and validates."""

from pathlib import Path
from typing import Any

import pytest

from stepwell.recipe.loading import RecipeError, resolve
from stepwell.recipe.recipe import Recipe
from stepwell.tasks.r2e.images import ImagesUnfit
from stepwell.tasks.r2e.importing import ImportRequest, import_r2e
from stepwell.tasks.r2e.task_set import BrokenSet
from tests.r2e_rows import REPOS, instance_id, r2e_recipe, write_folder
from workers.task_sets import make_task_sets

IDS = [instance_id(number, REPOS[number % 3]) for number in range(6)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path)
    rows, images = (tmp_path / "train.jsonl",), tmp_path / "images"
    import_r2e(ImportRequest(rows, images, "train", tmp_path / "set", ids=tuple(IDS[:4])))
    import_r2e(ImportRequest(rows, images, "validation", tmp_path / "set", ids=tuple(IDS[4:])))
    return tmp_path


def recipe(folder: Path, **sections: dict[str, Any]) -> Recipe:
    return resolve(r2e_recipe(folder / "set", **sections), source="a test")


async def test_training_takes_the_tasks_in_the_sets_order_and_again_from_the_first(folder: Path) -> None:
    sets = await make_task_sets(recipe(folder, run={"max_steps": 3, "prompts_per_step": 2}))
    assert [task.id for task in sets.train] == [*IDS[:4], *IDS[:2]]
    assert [task.id for task in sets.main] == IDS[4:5]
    assert (sets.reserve, sets.confirm, sets.heldout) == ((), (), ())


async def test_what_the_tasks_do_not_hold_is_stored_once_beside_them(folder: Path) -> None:
    sets = await make_task_sets(recipe(folder, run={"max_steps": 3, "prompts_per_step": 2}))
    assert [file.name for file in sets.secrets] == [task.secrets for task in (*sets.train[:4], *sets.main)]
    assert all(file.is_file() for file in sets.secrets)


async def test_a_reserve_is_taken_out_of_training(folder: Path) -> None:
    sets = await make_task_sets(recipe(folder, failures={"reserve": 1}))
    assert {task.id for task in sets.reserve} < set(IDS[:4])
    assert {task.id for task in sets.train}.isdisjoint({task.id for task in sets.reserve})
    with pytest.raises(ValueError, match=r"failures\.reserve is 4, but the split train of .* is 4"):
        await make_task_sets(recipe(folder, failures={"reserve": 4}))


async def test_more_validation_tasks_than_there_are_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"ask for 3 tasks, but the split validation of .* has 2"):
        await make_task_sets(recipe(folder, validation={"tasks": 3}))


async def test_images_are_looked_at_where_the_recipe_says(folder: Path) -> None:
    (folder / "images").rename(folder / "moved")
    with pytest.raises(ImagesUnfit, match="4 missing"):
        await make_task_sets(recipe(folder))
    moved = {"source": "r2e", "path": str(folder / "set"), "images": str(folder / "moved")}
    assert len((await make_task_sets(recipe(folder, tasks=moved))).main) == 1


async def test_a_set_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(BrokenSet, match="it holds no split"):
        await make_task_sets(recipe(folder, tasks={"source": "r2e", "path": str(folder / "nowhere")}))


def test_families_that_training_never_sees_are_refused(folder: Path) -> None:
    with pytest.raises(RecipeError, match=r'heldout_tasks would do nothing with tasks\.source = "r2e"'):
        recipe(folder, validation={"heldout_tasks": 1})
