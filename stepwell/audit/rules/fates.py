"""Every prompt that was dispatched, replacements among them, has exactly one fate; nothing else was rolled out."""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, StreamRecord
from stepwell.events import GroupClosed, GroupOpened, StepAdmitted, ValidationClosed, ValidationOpened
from stepwell.events.group_closed import Fate
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import prompt_stream, validation_scope

HOLDS = "each dispatched prompt ends with one fate, and every group and rollout was dispatched"
UNIT = "prompts"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to training steps and validations.

    A prompt may be without a fate while its step is not admitted, or its validation not closed, in a run that is not
    finished or failed.
    """
    may_be_open = record.finished is None or record.finished.end is RunEnd.FAILED
    dispatched: set[str] = set()
    stream = record.run_events
    admitted = {event.step for _, event in stream.every(StepAdmitted)}
    for number, step in record.steps.items():
        is_open = may_be_open and number not in admitted
        names, tasks = [prompt.stream for prompt in step.prompts], [prompt.task for prompt in step.prompts]
        _check_prompts(record, names, tasks, step.event.version, False, is_open, stream.name, step.seq, tally)
        dispatched.update(names)
    for validation in record.of_kind("validation"):
        opening = validation.first(ValidationOpened)
        if opening is None:
            continue
        seq, opened = opening
        scope = validation_scope(opened.version, opened.dataset)
        names = [prompt_stream(record.run, scope, index) for index in range(len(opened.tasks))]
        is_open = may_be_open and validation.first(ValidationClosed) is None
        _check_prompts(record, names, opened.tasks, opened.version, True, is_open, validation.name, seq, tally)
        dispatched.update(names)
    _check_strays(record, dispatched, tally)


def _check_prompts(
    record: RunRecord,
    names: list[str],
    tasks: list[str],
    version: int,
    is_validation: bool,
    is_open: bool,
    parent: str,
    seq: int,
    tally: Tally,
) -> None:
    fates = 0
    for name, task in zip(names, tasks, strict=True):
        group = record.streams.get(name)
        if group is None:
            if not is_open:
                tally.findings.append(Finding(parent, seq, f"dispatched {name}, which does not exist"))
            continue
        opening = group.first(GroupOpened)
        if opening is not None:
            opened = opening[1]
            tally.expect(
                (opened.task, opened.version) == (task, version),
                name,
                opening[0],
                f"opened for task {opened.task} and version {opened.version}, dispatched were {task} and {version}",
            )
        closings = group.every(GroupClosed)
        fates += len(closings)
        for closed_seq, closed in closings:
            if (closed.fate is Fate.VALIDATED) != is_validation and closed.fate in (Fate.VALIDATED, Fate.TRAINED):
                purpose = "a validation" if is_validation else "a training step"
                tally.findings.append(Finding(name, closed_seq, f"fate {closed.fate} in {purpose}"))
    if fates != len(names) and not is_open:
        tally.findings.append(Finding(parent, seq, f"dispatched {len(names)} prompts, which have {fates} fates"))


def _check_strays(record: RunRecord, dispatched: set[str], tally: Tally) -> None:
    for group in record.of_kind("prompt"):
        if group.name not in dispatched:
            tally.findings.append(Finding(group.name, 0, "a group for a prompt that was not dispatched"))
    for rollout in record.of_kind("rollout"):
        parent, _, sample = rollout.name.removeprefix("rollout/").rpartition("/")
        wanted = _samples(record.streams.get(f"prompt/{parent}"))
        if not sample.isdecimal() or int(sample) >= wanted:
            tally.findings.append(Finding(rollout.name, 0, f"a rollout of a group that has {wanted} samples"))


def _samples(group: StreamRecord | None) -> int:
    """Rollouts that a group was opened for."""
    opening = group.first(GroupOpened) if group else None
    return opening[1].samples if opening else 0
