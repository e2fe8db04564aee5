"""The task set of a run, as it is stored: which task stands where, by digest."""

from pydantic import BaseModel, ConfigDict, Field

from stepwell.events.canonical import canonical_json
from stepwell.rl.schedule import prompts_of_step
from stepwell.tasks.task import Task


class TaskEntry(BaseModel):
    """One task."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """Its id."""
    blob: str
    """SHA-256 of its stored form."""


def _is_empty(entries: object) -> bool:
    return entries == ()


class TaskManifest(BaseModel):
    """Tasks of a run by set, in order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    train: tuple[TaskEntry, ...]
    """The curriculum: step `s` takes `[s * P, (s + 1) * P)`."""
    reserve: tuple[TaskEntry, ...] = ()
    """Replaces training prompts that fail, in this order."""
    demonstrated: tuple[TaskEntry, ...] = Field(default=(), exclude_if=_is_empty)
    """Training tasks that the warm-up demonstrates; left out of the stored form of a run that has none."""
    main: tuple[TaskEntry, ...]
    """Validation: what decides when to stop."""
    confirm: tuple[TaskEntry, ...]
    """Validation: what confirms it."""
    heldout: tuple[TaskEntry, ...]
    """Validation: families that training never sees."""

    def dataset(self, name: str) -> tuple[TaskEntry, ...]:
        """A validation set by name.

        Raises:
            KeyError: there is no such set.
        """
        return {"main": self.main, "confirm": self.confirm, "heldout": self.heldout}[name]

    def step(self, step: int, prompts: int) -> tuple[TaskEntry, ...]:
        """Tasks of a training step.

        Raises:
            IndexError: the curriculum is too short.
        """
        positions = prompts_of_step(step, prompts)
        entries = self.train[positions.start : positions.stop]
        if len(entries) < prompts:
            raise IndexError(
                f"step {step} needs {prompts} prompts from {step * prompts} on, {len(self.train)} are there"
            )
        return entries

    def blob(self) -> bytes:
        """Stored form."""
        return canonical_json(self.model_dump(mode="json"))


def task_blob(task: Task) -> bytes:
    """Stored form of a task."""
    return canonical_json(task.model_dump(mode="json"))
