"""A validation's figures follow from its groups, and the run recorded them as they are."""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, StreamRecord
from stepwell.events import (
    GroupClosed,
    ValidationClosed,
    ValidationOpened,
    ValidationRecorded,
)
from stepwell.events.streams import prompt_stream, validation_scope, validation_stream

HOLDS = "each validation is of the weights that the trainer recorded; its figures follow from the scores of its groups"
UNIT = "validated tasks"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each validation that is closed, and to what the run recorded of it.

    That its groups and turns are of the version that it pins, the rules `fates` and `versions` hold.
    """
    for validation in record.of_kind("validation"):
        for seq, opened in validation.every(ValidationOpened):
            wanted = record.exported(record.run, opened.version) or "no such version"
            what = f"pins version {opened.version} as {opened.weights_digest}, trained was {wanted}"
            tally.expect(opened.weights_digest == wanted, validation.name, seq, what)
        _check_closed(record, validation, tally)
    run = record.run_events
    for seq, recorded in run.every(ValidationRecorded):
        stream = record.streams.get(validation_stream(record.run, recorded.version, recorded.dataset))
        closing = stream.first(ValidationClosed) if stream else None
        found = (closing[1].pass_1, closing[1].pass_k, closing[1].k) if closing else None
        said = (recorded.pass_1, recorded.pass_k, recorded.k)
        if found != said:
            what = f"recorded (pass@1, pass@k, k) {said}, the validation says {found or 'that it is not closed'}"
            tally.findings.append(Finding(run.name, seq, what))


def _check_closed(record: RunRecord, validation: StreamRecord, tally: Tally) -> None:
    opening, closing = validation.first(ValidationOpened), validation.first(ValidationClosed)
    if opening is None or closing is None:
        return
    opened, (seq, closed) = opening[1], closing
    scope = validation_scope(opened.version, opened.dataset)
    passed: list[int] = []
    graded: list[int] = []
    for index in range(len(opened.tasks)):
        group = record.streams.get(prompt_stream(record.run, scope, index))
        group_closing = group.first(GroupClosed) if group else None
        scores = [score for score in (group_closing[1].scores if group_closing else []) if score is not None]
        passed.append(sum(score > 0 for score in scores))
        graded.append(len(scores))
    for index, found in enumerate(zip(passed, graded, strict=True)):
        said = (closed.passed[index], closed.graded[index]) if index < len(closed.passed) else None
        tally.expect(
            said == found, validation.name, seq, f"task {index} has (passed, graded) {said}, its group says {found}"
        )
    if not passed or not all(graded):
        return  # named above, or by the rule `fates`
    figures = (
        sum(won / of for won, of in zip(passed, graded, strict=True)) / len(passed),
        sum(won > 0 for won in passed) / len(passed),
        opened.samples,
    )
    said = (closed.pass_1, closed.pass_k, closed.k)
    if said != figures:
        what = f"says (pass@1, pass@k, k) {said}, its groups make it {figures}"
        tally.findings.append(Finding(validation.name, seq, what))
