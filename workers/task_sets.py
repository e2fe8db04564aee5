"""The tasks of a recipe, by set."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from stepwell.recipe.recipe import Recipe
from stepwell.recipe.sections import ForgedTasks, PackageTasks, R2ETasks
from stepwell.recipe.validating import ValidationSection
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.forge import TaskSet
from stepwell.tasks.packages import NotEnoughTasks, SetPlan, forge_set
from stepwell.tasks.packages.mutation_kinds import KINDS
from stepwell.tasks.place import with_place
from stepwell.tasks.r2e.task_set import load_r2e
from stepwell.tasks.set_file import read_set
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
    demonstrated: tuple[Task, ...] = ()
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
        train, spare = split_evenly(forged.curriculum(prompts + reserve), reserve)
        return TaskSets(train, spare, forged.validation, forged.confirm, forged.heldout_family)
    if isinstance(recipe.tasks, R2ETasks):
        held_out = validation.tasks + validation.confirm_tasks
        return await asyncio.to_thread(_imported_sets, recipe.tasks, recipe, held_out)
    return package_sets(recipe, recipe.tasks, await _from_packages(recipe.tasks, recipe.validation))


def package_sets(recipe: Recipe, tasks: PackageTasks, forged: TaskSet) -> TaskSets:
    """Deals forged tasks to the sets of a run.

    Args:
        recipe: Of the run.
        tasks: Its section of tasks.
        forged: At least as many as it asks for.

    Raises:
        ValueError: no task is left to train on, or a place is to be told that a task has not.
    """
    validation, placed = recipe.validation, _placed(forged, tasks.place_lines)
    demonstrations = 0 if recipe.warm_up is None else recipe.warm_up.tasks
    others, demonstrated = split_evenly(placed.curriculum(tasks.train), demonstrations)
    prompts = recipe.run.max_steps * recipe.run.prompts_per_step
    curriculum, spare = _repeated(others, recipe.failures.reserve, prompts, "tasks.train")
    main, confirm = placed.validation[: validation.tasks], placed.validation[validation.tasks :]
    return TaskSets(
        curriculum,
        spare,
        main,
        confirm[: validation.confirm_tasks],
        placed.heldout_family[: validation.heldout_tasks],
        demonstrated,
    )


def _placed(tasks: TaskSet, lines: int | None) -> TaskSet:
    """The set with the place of each defect in its issue, if it is to be told."""
    return tasks if lines is None else _each(tasks, lambda split: tuple(with_place(task, lines) for task in split))


def _each(tasks: TaskSet, do: Callable[[tuple[Task, ...]], tuple[Task, ...]]) -> TaskSet:
    """The set with something done to each split."""
    return TaskSet(do(tasks.train), do(tasks.validation), do(tasks.confirm), do(tasks.heldout_family))


def _kind_of(task: Task) -> str:
    """Its kind of defect; a task that was not made from a package has none."""
    return "" if task.origin is None else task.origin.kind


async def _from_packages(tasks: PackageTasks, validation: ValidationSection) -> TaskSet:
    """At least as many tasks as the recipe asks for.

    Raises:
        NotEnoughTasks: there are fewer.
        BrokenSetFile: `tasks.path` is no task set.
    """
    if tasks.path is not None:
        made = _out_of_file(await asyncio.to_thread(read_set, Path(tasks.path).expanduser()), tasks)
    else:
        made = await _forged(tasks, validation)
    chosen = _each(made, lambda split: tuple(task for task in split if _kind_of(task) in tasks.kinds))
    held_out = validation.tasks + validation.confirm_tasks
    for key, found, wanted in (
        ("tasks.train", chosen.train, tasks.train),
        ("validation.tasks and validation.confirm_tasks", chosen.validation, held_out),
        ("validation.heldout_tasks", chosen.heldout_family, validation.heldout_tasks),
    ):
        if len(found) < wanted:
            raise NotEnoughTasks(
                f"{wanted} tasks are asked for by {key}, the packages give {len(found)}: ask for fewer, or name more "
                "packages or kinds of defect"
            )
    return chosen


def _out_of_file(found: Sequence[Task], tasks: PackageTasks) -> TaskSet:
    """Tasks of the recipe's packages, in the order of the file, training from easy to hard."""
    train = [task for task in found if task.split == "train" and task.family in tasks.packages]
    return TaskSet(
        train=tuple(sorted(train, key=lambda task: task.difficulty)),
        validation=tuple(task for task in found if task.split == "validation" and task.family in tasks.packages),
        confirm=(),
        heldout_family=tuple(
            task for task in found if task.split == "heldout_family" and task.family in tasks.held_out
        ),
    )


async def _forged(tasks: PackageTasks, validation: ValidationSection) -> TaskSet:
    """Every package gives as many as every other.

    Kinds of defect take turns when they are forged: of tasks of some kinds, as many more are forged as there are kinds
    beside them.
    """
    held_out, more = validation.tasks + validation.confirm_tasks, len(KINDS) / len(set(tasks.kinds))
    plan = SetPlan(
        seed=tasks.seed,
        packages=tasks.packages,
        held_out=tasks.held_out,
        train=ceil(more * tasks.train / len(tasks.packages)),
        validation=ceil(more * held_out / len(tasks.packages)),
        heldout=ceil(more * validation.heldout_tasks / max(1, len(tasks.held_out))),
    )
    with tempfile.TemporaryDirectory(prefix="stepwell-forge-") as folder:
        factory = BubblewrapFactory(Path(folder))
        try:
            return (await forge_set(plan, factory, Home.of(None).root / "packages")).tasks
        finally:
            await factory.close()


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
    return TaskSets(curriculum, spare, main, confirm, (), secrets=secrets)


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
    train, spare = split_evenly(tasks, reserve)
    return tuple(train[index % len(train)] for index in range(prompts)), spare


def split_evenly(tasks: Sequence[Task], count: int) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """Takes so many out of ordered tasks, evenly, so that they are as hard as the rest; both keep their order."""
    kept = {(2 * index + 1) * len(tasks) // (2 * count) for index in range(count)}
    return (
        tuple(task for index, task in enumerate(tasks) if index not in kept),
        tuple(task for index, task in enumerate(tasks) if index in kept),
    )
