"""Which blobs an event names."""

from collections.abc import Callable, Mapping
from typing import Any

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

Naming = Mapping[type[Event], Callable[[Any], tuple[str, ...]]]
"""From an event of a type to digests; by type, since all events of a run are asked."""

_BLOBS: Naming = {
    TurnRecorded: lambda event: (event.payload,),
    RolloutEnded: lambda event: (event.changed,),
    VerdictReached: lambda event: (event.report,),
    GroupOpened: lambda event: (event.task,),
    PromptReplaced: lambda event: (event.task,),
    StepDispatched: lambda event: tuple(event.tasks),
    ValidationOpened: lambda event: tuple(event.tasks),
    StepAdmitted: lambda event: (event.manifest, event.group_heads.heads),
    ValidationClosed: lambda event: (event.children_heads.heads,),
    StepTrained: lambda event: (event.manifest, event.export),
    VersionCreated: lambda event: (event.export,),
    CheckpointSaved: lambda event: (event.files,),
    RunCreated: lambda event: (event.task_set,),
    HistoryArchived: lambda event: (event.history,),
}
_FOLDERS: Naming = {
    StepTrained: lambda event: (event.export,),
    VersionCreated: lambda event: (event.export,),
    CheckpointSaved: lambda event: (event.files,),
}
_DOCUMENTS: Naming = {
    RunCreated: lambda event: (event.task_set,),
    StepAdmitted: lambda event: (event.manifest, event.group_heads.heads),
    ValidationClosed: lambda event: (event.children_heads.heads,),
}


def blobs_of(event: Event) -> tuple[str, ...]:
    """Digests of the blobs that an event names."""
    named = _BLOBS.get(type(event))
    return named(event) if named else ()


def folders_of(event: Event) -> tuple[str, ...]:
    """Of those, the ones that list the files of a folder: JSON, from a file's name to the digest of its blob."""
    named = _FOLDERS.get(type(event))
    return named(event) if named else ()


def documents_of(event: Event) -> tuple[str, ...]:
    """Of those, the ones whose contents the rules read: the run's tasks, batch manifests and lists of children."""
    named = _DOCUMENTS.get(type(event))
    return named(event) if named else ()
