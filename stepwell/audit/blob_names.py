"""Which blobs an event names."""

from stepwell.events import (
    CheckpointSaved,
    GroupOpened,
    HistoryArchived,
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


def blobs_of(event: Event) -> tuple[str, ...]:
    """Digests of the blobs that an event names."""
    match event:
        case TurnRecorded():
            return (event.payload,)
        case RolloutEnded():
            return (event.changed,)
        case VerdictReached():
            return (event.report,)
        case GroupOpened() | PromptReplaced():
            return (event.task,)
        case StepDispatched() | ValidationOpened():
            return tuple(event.tasks)
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
        case HistoryArchived():
            return (event.history,)
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
