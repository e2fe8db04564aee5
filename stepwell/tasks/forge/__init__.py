"""Forged tasks: small Python repositories with one defect each, from families of functions kept as data."""

from stepwell.tasks.forge.generator import forged_task
from stepwell.tasks.forge.task_set import ForgeCounts, TaskSet, forge

__all__ = ["ForgeCounts", "TaskSet", "forge", "forged_task"]
