"""What the rules read of blobs can be read: manifests, reports, votes, questions and answers."""

from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter

from stepwell.audit.finding import Tally
from stepwell.events import CheckReached, JudgementReached, PassScored, SubmissionEvaluated, SubmissionTaken
from stepwell.events.base import Event
from stepwell.ptb.trials.audited import (
    ANSWERS,
    CONTAMINATION,
    ENTRIES,
    IDENTITY,
    QUESTION,
    RESULT,
    VOTES,
    RunSetRecord,
)

HOLDS = "each blob whose contents the rules read has the form that its event gives it"
UNIT = "documents"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each event that names such a blob; one that is missing the rule `blobs` names."""
    for trial in record.trials:
        for seq, event in trial.stream.events:
            for what, digest, form in _documents(event):
                if digest in record.stored.documents:
                    is_read = record.read(digest, form) is not None
                    tally.expect(is_read, trial.name, seq, f"blob {digest} holds no {what} that can be read")


def _documents(event: Event) -> Iterator[tuple[str, str, TypeAdapter[Any]]]:
    match event:
        case SubmissionTaken():
            yield "list of files", event.model, ENTRIES
            yield "list of files", event.manifest, ENTRIES
        case CheckReached():
            yield f"report on {event.check}", event.report, IDENTITY if event.check == "identity" else CONTAMINATION
        case JudgementReached():
            yield "votes", event.votes, VOTES
            yield "question", event.question, QUESTION
        case PassScored():
            yield "answers", event.answers, ANSWERS
        case SubmissionEvaluated():
            yield "result", event.report, RESULT
        case _:
            return
