"""A prompt that failed is replaced while the reserve lasts, once, and no other is."""

from stepwell.audit.dispatched import AuditedStep
from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord
from stepwell.events import PromptReplaced, StepAdmitted
from stepwell.events.group_closed import Fate

HOLDS = "each quarantined or abandoned prompt of an admitted step was replaced once while the reserve lasted, no other"
UNIT = "failed prompts"

FAILED = (Fate.QUARANTINED, Fate.ABANDONED)
"""Fates of the prompts that are replaced."""


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each step, in their order."""
    stream = record.run_events
    admitted = {event.step: seq for seq, event in stream.every(StepAdmitted)}
    for seq, replaced in stream.every(PromptReplaced):
        if replaced.step not in record.steps:
            what = f"replaces a prompt of step {replaced.step}, which was not dispatched"
            tally.findings.append(Finding(stream.name, seq, what))
    left = None if record.recipe is None else record.recipe.failures.reserve
    for number in sorted(record.steps):
        step = record.steps[number]
        _check_replacements(record, step, admitted.get(number), tally)
        if left is not None:
            left -= len(step.replacements)
            if number in admitted:
                _check_left_out(record, step, left, admitted[number], tally)


def _check_replacements(record: RunRecord, step: AuditedStep, admitted: int | None, tally: Tally) -> None:
    stream, first = record.run_events.name, len(step.event.tasks)
    replaced_before: set[int] = set()
    for place, (seq, replaced) in enumerate(step.replacements):
        where = f"prompt {replaced.prompt} of step {replaced.step}"
        if replaced.prompt != first + place:
            tally.findings.append(Finding(stream, seq, f"adds {where}, wanted prompt {first + place}"))
        if not step.seq < seq < (seq + 1 if admitted is None else admitted):
            tally.findings.append(Finding(stream, seq, f"adds {where} before it was dispatched or after its admission"))
        if replaced.replaces in replaced_before:
            what = f"{where} replaces prompt {replaced.replaces}, which was replaced already"
            tally.findings.append(Finding(stream, seq, what))
        replaced_before.add(replaced.replaces)
        closed = (
            record.closing(step.prompts[replaced.replaces].stream) if 0 <= replaced.replaces < first + place else None
        )
        fate = "no fate" if closed is None else closed.fate
        tally.expect(
            fate in FAILED, stream, seq, f"{where} replaces prompt {replaced.replaces}, which had not failed: {fate}"
        )


def _check_left_out(record: RunRecord, step: AuditedStep, left: int, admitted: int, tally: Tally) -> None:
    """While the reserve lasts a failed prompt is replaced before its step is admitted."""
    replaced = {event.replaces for _, event in step.replacements}
    for index, prompt in enumerate(step.prompts):
        closed = record.closing(prompt.stream)
        if closed is None or closed.fate not in FAILED or index in replaced:
            continue
        tally.expect(
            left <= 0,
            record.run_events.name,
            admitted,
            f"step {step.event.step} was admitted without a prompt in place of {index} ({closed.fate}), "
            f"though {left} of the reserve were left",
        )
