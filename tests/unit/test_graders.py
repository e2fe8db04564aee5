"""Which grader judges a task, how long that may take, and where its image is."""

import os
from pathlib import Path

import pytest

from activities.task_images import TaskImages
from stepwell.contracts.run import GRADING_S, PromptRef
from stepwell.recipe.loading import resolve
from stepwell.sandbox.images import ImageError
from stepwell.tasks.graders import grader_of, grading_deadline_s
from stepwell.tasks.grading.verdict import grader_digest
from stepwell.tasks.r2e.importing import ImportRequest, import_r2e
from stepwell.tasks.r2e.judging import r2e_grader_digest
from stepwell.tasks.r2e.task_set import load_r2e
from stepwell.tasks.task import Task
from tests.r2e_rows import r2e_recipe, write_folder


@pytest.fixture
def imported(tmp_path: Path) -> Task:
    """A task of an imported set."""
    write_folder(tmp_path)
    import_r2e(ImportRequest((tmp_path / "train.jsonl",), tmp_path / "images", "train", tmp_path / "set"))
    return load_r2e(tmp_path / "set", "train").tasks[0]


def forged() -> Task:
    """A task without an image."""
    fields = {"id": "t", "family": "f", "split": "train", "difficulty": 1, "issue": "", "grader": "calls"}
    return Task.model_validate(fields | {"files": {}, "hidden": {}, "gold": {}, "expected": ()})


def test_a_task_with_an_image_has_a_grader_of_its_own(imported: Task) -> None:
    assert (grader_of(forged()), grader_of(imported)) == (grader_digest(), r2e_grader_digest())
    assert grader_digest() != r2e_grader_digest()


def test_a_grading_may_take_longer_the_longer_the_tests_may(imported: Task) -> None:
    assert grading_deadline_s(forged()) <= GRADING_S
    for task in (forged(), imported):
        longer = task.model_copy(update={"timeout_s": task.timeout_s + 240.0})
        assert grading_deadline_s(longer) >= grading_deadline_s(task) + 240.0
    assert grading_deadline_s(imported) > GRADING_S


def test_a_deadline_that_is_the_declared_one_is_not_in_the_message() -> None:
    assert "grading_s" not in PromptRef(prompt=0, task="t").model_dump_json()
    longer = PromptRef(prompt=0, task="t", grading_s=1080.0)
    assert PromptRef.model_validate_json(longer.model_dump_json()) == longer


async def test_an_image_is_looked_for_where_the_recipe_says_or_else_the_set(imported: Task, tmp_path: Path) -> None:
    assert imported.image is not None
    by_set = resolve(r2e_recipe(tmp_path / "set"), source="a test")
    assert await TaskImages().find(by_set, imported) == tmp_path / "images" / imported.image.file
    (tmp_path / "images").rename(tmp_path / "moved")
    with pytest.raises(ImageError, match="put it there, or name the folder"):
        await TaskImages().find(by_set, imported)
    told = resolve(r2e_recipe(tmp_path / "no-set", tasks={"images": str(tmp_path / "moved")}), source="a test")
    assert await TaskImages().find(told, imported) == tmp_path / "moved" / imported.image.file


async def test_an_image_that_changes_while_a_worker_lives_is_looked_at_again(imported: Task, tmp_path: Path) -> None:
    recipe, images = resolve(r2e_recipe(tmp_path / "set"), source="a test"), TaskImages()
    image = await images.find(recipe, imported)
    before = image.stat()
    image.write_bytes(b"x" * before.st_size)
    os.utime(image, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(ImageError, match="is wanted"):
        await images.find(recipe, imported)
    with pytest.raises(ImageError, match="says nowhere"):
        await images.find(recipe, forged())
