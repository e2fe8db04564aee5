"""The tasks of a recipe, by set."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stepwell.recipe.recipe import Recipe
from stepwell.recipe.sections import ForgedTasks
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.packages import forge_package
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
    held_out = validation.tasks + validation.confirm_tasks
    with tempfile.TemporaryDirectory(prefix="stepwell-forge-") as folder:
        factory = BubblewrapFactory(Path(folder))
        try:
            tasks = await forge_package(
                recipe.tasks.package,
                recipe.tasks.seed,
                recipe.tasks.train + held_out,
                factory,
                held_out=held_out,
                cache_folder=Home.of(None).root / "packages",
            )
        finally:
            await factory.close()
    own, rest = tasks[: recipe.tasks.train], tasks[recipe.tasks.train :]
    if reserve >= len(own):
        raise ValueError(
            f"failures.reserve is {reserve}, but tasks.train is {len(own)}: some task must be left to train on"
        )
    train, spare = split_reserve(own, reserve)
    curriculum = tuple(train[index % len(train)] for index in range(prompts))
    return TaskSets(curriculum, spare, tuple(rest[: validation.tasks]), tuple(rest[validation.tasks :]), ())


def split_reserve(tasks: Sequence[Task], reserve: int) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """Takes a reserve out of ordered tasks, evenly, so that it is as hard as the rest; both keep their order."""
    kept = {(2 * index + 1) * len(tasks) // (2 * reserve) for index in range(reserve)}
    return (
        tuple(task for index, task in enumerate(tasks) if index not in kept),
        tuple(task for index, task in enumerate(tasks) if index in kept),
    )
