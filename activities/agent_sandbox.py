"""The sandbox that an agent gets for a task."""

from activities.agent_settings import sandbox_limits
from activities.task_images import TaskImages
from stepwell.recipe.recipe import Recipe
from stepwell.sandbox.protocol import Sandbox, SandboxFactory
from stepwell.tasks.r2e.grade import sandbox_for_agent
from stepwell.tasks.task import Task


async def agent_sandbox(recipe: Recipe, task: Task, factory: SandboxFactory, images: TaskImages) -> Sandbox:
    """A fresh one: around the task's files, or of its image, without what the agent must not see.

    Raises:
        BrokenSet, ImageError, SandboxError: it cannot be made: infrastructure.
    """
    files = {path: text.encode() for path, text in task.files.items()}
    limits = sandbox_limits(recipe)
    if task.image is None:
        return await factory.create(files, limits)
    return await sandbox_for_agent(factory, limits, await images.find(recipe, task), files=files, work=task.work)
