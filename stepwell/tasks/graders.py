"""Which grader judges a task, by what the task is made of."""

from stepwell.tasks.grading.verdict import grader_digest
from stepwell.tasks.r2e.grade import grading_limits
from stepwell.tasks.r2e.judging import r2e_grader_digest
from stepwell.tasks.task import Task

IMAGE_S = 600.0
"""For an image to be read and hashed, looked into and started, which a machine with many sandboxes may be slow at."""
RUNS = 30.0
"""Wall clock of all runs of a task's tests, those of its reference solution and their sandboxes too, in units of the
task's deadline."""


def grader_of(task: Task) -> str:
    """Digest of the task's grader: another one may give another verdict."""
    return grader_digest() if task.image is None else r2e_grader_digest()


def grading_deadline_s(task: Task) -> float:
    """Wall clock in which an attempt at a grading ends by itself, whatever the work does; one that has not hangs."""
    if task.image is None:
        return RUNS * task.timeout_s
    return IMAGE_S + grading_limits(task.timeout_s).wall_clock_s
