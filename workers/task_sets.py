"""The tasks of a recipe, by set."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from stepwell.recipe.recipe import Recipe
from stepwell.recipe.sections import ForgedTasks, PackageTasks, R2ETasks, ValidationSection
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.forge import TaskSet
from stepwell.tasks.packages import NotEnoughTasks, SetPlan, forge_set
from stepwell.tasks.r2e.task_set import load_r2e
from stepwell.tasks.sources import forged_tasks
from stepwell.tasks.task import Task
from workers.services.home import Home


@dataclass(frozen=True)
class TaskSets:
    """Tasks by set, as `stepwell.tasks.manifest.TaskManifest` names them."""

    train: tuple[Task, ...]
    reserve: tuple[Task, ...]
    main: tuple[Task, ...]
    confirm: tuple[Task, ...]
    heldout: tuple[Task, ...]
    secrets: tuple[Path, ...] = ()
    """Files to store as blobs beside the tasks, each named by its SHA-256: what tasks name and do not hold."""


async def make_task_sets(recipe: Recipe) -> TaskSets:
    """Makes the tasks that the recipe asks for; the same recipe gives the same tasks.

    Raises:
        ValueError: more tasks are asked for than can be made.
    """
    validation, reserve = recipe.validation, recipe.failures.reserve
    prompts = recipe.run.max_steps * recipe.run.prompts_per_step
    if isinstance(recipe.tasks, ForgedTasks):
        forged = await asyncio.to_thread(
            forged_tasks,
            recipe.tasks.seed,
            main=validation.tasks,
            confirm=validation.confirm_tasks,
            heldout=validation.heldout_tasks,
        )
        train, spare = split_reserve(forged.curriculum(prompts + reserve), reserve)
        return TaskSets(train, spare, forged.validation, forged.confirm, forged.heldout_family)
    if isinstance(recipe.tasks, R2ETasks):
        held_out = validation.tasks + validation.confirm_tasks
        return await asyncio.to_thread(_imported_sets, recipe.tasks, recipe, held_out)
    forged = await _from_packages(recipe.tasks, recipe.validation)
    curriculum, spare = _repeated(forged.curriculum(recipe.tasks.train), reserve, prompts, "tasks.train")
    main, confirm = forged.validation[: validation.tasks], forged.validation[validation.tasks :]
    return TaskSets(
        curriculum,
        spare,
        main,
        confirm[: validation.confirm_tasks],
        forged.heldout_family[: validation.heldout_tasks],
    )


async def _from_packages(tasks: PackageTasks, validation: ValidationSection) -> TaskSet:
    """At least as many tasks as the recipe asks for, every package giving as many as every other."""
    held_out = validation.tasks + validation.confirm_tasks
    plan = SetPlan(
        seed=tasks.seed,
        packages=tasks.packages,
        held_out=tasks.held_out,
        train=ceil(tasks.train / len(tasks.packages)),
        validation=ceil(held_out / len(tasks.packages)),
        heldout=ceil(validation.heldout_tasks / max(1, len(tasks.held_out))),
    )
    with tempfile.TemporaryDirectory(prefix="stepwell-forge-") as folder:
        factory = BubblewrapFactory(Path(folder))
        try:
            forged = await forge_set(plan, factory, Home.of(None).root / "packages")
        finally:
            await factory.close()
    for key, found, wanted in (
        ("tasks.train", forged.tasks.train, tasks.train),
        ("validation.tasks and validation.confirm_tasks", forged.tasks.validation, held_out),
        ("validation.heldout_tasks", forged.tasks.heldout_family, validation.heldout_tasks),
    ):
        if len(found) < wanted:
            raise NotEnoughTasks(
                f"{wanted} tasks are asked for by {key}, the packages give {len(found)}: ask for fewer, or name more "
                "packages"
            )
    return forged.tasks


def _imported_sets(tasks: R2ETasks, recipe: Recipe, held_out: int) -> TaskSets:
    """An imported set, once its images are looked at.

    Raises:
        BrokenSet: there is no such set, or it was touched.
        ImagesUnfit: images are missing or changed, all of them named.
        ValueError: it has fewer tasks than are asked for.
    """
    folder, images = Path(tasks.path).expanduser(), None if tasks.images is None else Path(tasks.images).expanduser()
    train, validation = load_r2e(folder, "train"), load_r2e(folder, "validation")
    for one in (train, validation):
        one.check_images(images)
    if held_out > len(validation.tasks):
        raise ValueError(
            f"validation.tasks and validation.confirm_tasks ask for {held_out} tasks, but the split validation of "
            f"{folder} has {len(validation.tasks)}: ask for fewer, or import more"
        )
    prompts = recipe.run.max_steps * recipe.run.prompts_per_step
    curriculum, spare = _repeated(train.tasks, recipe.failures.reserve, prompts, f"the split train of {folder}")
    main, confirm = validation.tasks[: recipe.validation.tasks], validation.tasks[recipe.validation.tasks : held_out]
    secrets = train.secrets_files([*curriculum, *spare]) + validation.secrets_files([*main, *confirm])
    return TaskSets(curriculum, spare, main, confirm, (), secrets)


def _repeated(
    tasks: Sequence[Task], reserve: int, prompts: int, what: str
) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """As many prompts as a run has, and its reserve: the tasks in their order, and again from the first.

    Raises:
        ValueError: the reserve takes them all.
    """
    if reserve >= len(tasks):
        raise ValueError(
            f"failures.reserve is {reserve}, but {what} is {len(tasks)}: some task must be left to train on"
        )
    train, spare = split_reserve(tasks, reserve)
    return tuple(train[index % len(train)] for index in range(prompts)), spare


def split_reserve(tasks: Sequence[Task], reserve: int) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """Takes a reserve out of ordered tasks, evenly, so that it is as hard as the rest; both keep their order."""
    kept = {(2 * index + 1) * len(tasks) // (2 * reserve) for index in range(reserve)}
    return (
        tuple(task for index, task in enumerate(tasks) if index not in kept),
        tuple(task for index, task in enumerate(tasks) if index in kept),
    )
