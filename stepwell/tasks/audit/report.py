"""The report of an audit, and its digest."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from stepwell.events.canonical import digest_of_json
from stepwell.tasks.audit.machine import Machine
from stepwell.tasks.grading.verdict import Outcome

REPORT_STARTS = ("machine",)
"""First key of the JSON of a report."""


class BrokenReport(ValueError):
    """A file is no audit report."""


class Observation(BaseModel):
    """One grading, without what is measured."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float | None
    """The score; None if the work could not be graded."""
    not_passed: dict[str, Outcome] = {}
    """Expected tests that did not pass, by id."""
    timed_out: bool = False
    """It did not end within many times the task's deadline."""
    failure: str | None = None
    """Why it could not be graded."""


class AuditedTask(BaseModel):
    """What an audit found of one task."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    task: str
    """Digest of the task."""
    gold: tuple[Observation, ...]
    """The gold patch, a repetition each; fewer of what did not end."""
    nothing: tuple[Observation, ...]
    """Doing nothing, a repetition each."""
    gold_s: tuple[float, ...]
    """Wall clock of each, measured, in seconds, the sandbox's start included."""
    nothing_s: tuple[float, ...]
    dropped: str | None
    """Why the task is no good; None if it is good."""

    @property
    def result(self) -> dict[str, object]:
        """All but what is measured."""
        return self.model_dump(mode="json", include={"gold", "nothing", "dropped"})


class AuditReport(BaseModel):
    """An audit of a task set on one machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    machine: Machine
    grader: str
    """Digest of the grader."""
    repetitions: int
    tasks: tuple[AuditedTask, ...]
    """In the order of the set."""

    @property
    def kept(self) -> tuple[AuditedTask, ...]:
        """Those that are good."""
        return tuple(task for task in self.tasks if task.dropped is None)

    @property
    def dropped(self) -> tuple[AuditedTask, ...]:
        """Those that are not."""
        return tuple(task for task in self.tasks if task.dropped is not None)

    @property
    def set_digest(self) -> str:
        """SHA-256 over the digests of the tasks, in order: that of the set."""
        return digest_of_json([task.task for task in self.tasks])

    @property
    def digest(self) -> str:
        """SHA-256 over task digest and result of every task, in order of the digests; no time and no machine."""
        return digest_of_json({task.task: task.result for task in self.tasks})


def read_report(path: Path) -> AuditReport:
    """The report in a file.

    Raises:
        BrokenReport: the file cannot be read, or is no report.
    """
    try:
        return AuditReport.model_validate_json(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenReport(f"{path} cannot be read: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise BrokenReport(
            f"{path} is no report of `stepwell tasks audit --out`: {first['msg']} at {place or 'its root'}"
        ) from error
