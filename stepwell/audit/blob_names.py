"""Which blobs an event names."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from stepwell.events import (
    AgentEnded,
    CheckpointSaved,
    CheckReached,
    EnvironmentTested,
    GroupOpened,
    HistoryArchived,
    JudgementReached,
    PassScored,
    PromptReplaced,
    RolloutEnded,
    RunCreated,
    RunSetFinished,
    StepAdmitted,
    StepDispatched,
    StepTrained,
    SubmissionEvaluated,
    SubmissionTaken,
    TrialPrepared,
    TurnRecorded,
    ValidationClosed,
    ValidationOpened,
    VerdictReached,
    VersionCreated,
)
from stepwell.events.base import Event

Naming = Mapping[type[Event], Callable[[Any], tuple[str, ...]]]
"""From an event of a type to digests; by type, since all events of a run are asked."""

_TASKS: Naming = {
    GroupOpened: lambda event: (event.task,),
    PromptReplaced: lambda event: (event.task,),
    StepDispatched: lambda event: tuple(event.tasks),
    ValidationOpened: lambda event: tuple(event.tasks),
}
_BLOBS: Naming = {
    TurnRecorded: lambda event: (event.payload,),
    RolloutEnded: lambda event: (event.changed,),
    VerdictReached: lambda event: (event.report,),
    **_TASKS,
    StepAdmitted: lambda event: (event.manifest, event.group_heads.heads),
    ValidationClosed: lambda event: (event.children_heads.heads,),
    StepTrained: lambda event: (event.manifest, event.export),
    VersionCreated: lambda event: (event.export,),
    CheckpointSaved: lambda event: (event.files,),
    RunCreated: lambda event: (event.task_set,),
    HistoryArchived: lambda event: (event.history,),
    TrialPrepared: lambda event: (event.files, event.prompt),
    EnvironmentTested: lambda event: (event.report,),
    AgentEnded: lambda event: _given(event.trace, event.events, event.traffic),
    SubmissionTaken: lambda event: _given(event.model, event.manifest),
    CheckReached: lambda event: (event.report,),
    JudgementReached: lambda event: (event.votes, event.question),
    PassScored: lambda event: (event.answers,),
    SubmissionEvaluated: lambda event: (event.report,),
    RunSetFinished: lambda event: (event.heads.heads,),
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
    TrialPrepared: lambda event: (event.prompt,),
    SubmissionTaken: lambda event: _given(event.model, event.manifest),
    CheckReached: lambda event: (event.report,),
    JudgementReached: lambda event: (event.votes, event.question),
    PassScored: lambda event: (event.answers,),
    SubmissionEvaluated: lambda event: (event.report,),
    RunSetFinished: lambda event: (event.heads.heads,),
}
_SECRETS_KEY = b'"secrets":'
"""In the stored form of a task, where it has secrets; quotation marks within a text are escaped there."""


class _TaskSecrets(BaseModel):
    """Of `stepwell.tasks.task.Task`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    secrets: str | None = None


def blobs_of(event: Event) -> tuple[str, ...]:
    """Digests of the blobs that an event names."""
    named = _BLOBS.get(type(event))
    return named(event) if named else ()


def folders_of(event: Event) -> tuple[str, ...]:
    """Of those, the ones that list the files of a folder: JSON, from a file's name to the digest of its blob."""
    named = _FOLDERS.get(type(event))
    return named(event) if named else ()


def tasks_of(event: Event) -> tuple[str, ...]:
    """Of those, the ones that are tasks: such a blob may name another, with what only the task's grader sees."""
    named = _TASKS.get(type(event))
    return named(event) if named else ()


def secrets_of(task: bytes) -> str | None:
    """Digest of the blob that a task's blob names; None where it names none, or is no task."""
    if _SECRETS_KEY not in task:  # spares the reading of tasks that hold everything themselves, and may be long
        return None
    try:
        return _TaskSecrets.model_validate_json(task).secrets
    except ValidationError:
        return None


def documents_of(event: Event) -> tuple[str, ...]:
    """Of those, the ones whose contents the rules read: a run's tasks, batch manifests and lists of children; of a
    trial its prompt, its model's files, verdicts, votes and answers."""
    named = _DOCUMENTS.get(type(event))
    return named(event) if named else ()


def models_of(event: Event) -> tuple[str, ...]:
    """Of those, the ones that list the files of a submitted model, each of which is a blob."""
    return _given(event.model) if isinstance(event, SubmissionTaken) else ()


def _given(*digests: str) -> tuple[str, ...]:
    """Without the empty ones: where there is nothing, no blob is named."""
    return tuple(digest for digest in digests if digest)
