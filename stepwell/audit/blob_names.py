"""Which blobs an event names."""

from pydantic import BaseModel, ConfigDict, ValidationError

from stepwell.events import (
    CheckpointSaved,
    GroupOpened,
    PromptReplaced,
    RolloutEnded,
    RunCreated,
    StepAdmitted,
    StepDispatched,
    StepTrained,
    TurnRecorded,
    ValidationClosed,
    ValidationOpened,
    VerdictReached,
    VersionCreated,
)
from stepwell.events.base import Event

_SECRETS_KEY = b'"secrets":'
"""In the stored form of a task, where it has secrets; quotation marks within a text are escaped there."""


class _TaskSecrets(BaseModel):
    """Of `stepwell.tasks.task.Task`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    secrets: str | None = None


def blobs_of(event: Event) -> tuple[str, ...]:
    """Digests of the blobs that an event names."""
    match event:
        case TurnRecorded():
            return (event.payload,)
        case RolloutEnded():
            return (event.changed,)
        case VerdictReached():
            return (event.report,)
        case GroupOpened() | PromptReplaced() | StepDispatched() | ValidationOpened():
            return tasks_of(event)
        case StepAdmitted():
            return (event.manifest, event.group_heads.heads)
        case ValidationClosed():
            return (event.children_heads.heads,)
        case StepTrained():
            return (event.manifest, event.export)
        case VersionCreated() | CheckpointSaved():
            return folders_of(event)
        case RunCreated():
            return (event.task_set,)
        case _:
            return ()


def folders_of(event: Event) -> tuple[str, ...]:
    """Of those, the ones that list the files of a folder: JSON, from a file's name to the digest of its blob."""
    match event:
        case StepTrained() | VersionCreated():
            return (event.export,)
        case CheckpointSaved():
            return (event.files,)
        case _:
            return ()


def tasks_of(event: Event) -> tuple[str, ...]:
    """Of those, the ones that are tasks: such a blob may name another, with what only the task's grader sees."""
    match event:
        case GroupOpened() | PromptReplaced():
            return (event.task,)
        case StepDispatched() | ValidationOpened():
            return tuple(event.tasks)
        case _:
            return ()


def secrets_of(task: bytes) -> str | None:
    """Digest of the blob that a task's blob names; None where it names none, or is no task."""
    if _SECRETS_KEY not in task:  # spares the reading of tasks that hold everything themselves, and may be long
        return None
    try:
        return _TaskSecrets.model_validate_json(task).secrets
    except ValidationError:
        return None


def documents_of(event: Event) -> tuple[str, ...]:
    """Of those, the ones whose contents the rules read: the run's tasks, batch manifests and lists of children."""
    match event:
        case RunCreated():
            return (event.task_set,)
        case StepAdmitted():
            return (event.manifest, event.group_heads.heads)
        case ValidationClosed():
            return (event.children_heads.heads,)
        case _:
            return ()
