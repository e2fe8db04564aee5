"""What differs between the audits of one set on two machines. Pure."""

from pydantic import BaseModel, ConfigDict

from stepwell.tasks.audit.report import AuditedTask, AuditReport


class Difference(BaseModel):
    """A task that two machines do not agree on, or that one of them dropped."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    task: str
    """Digest of the task."""
    reason: str


class Comparison(BaseModel):
    """Two audits, compared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kept: tuple[str, ...]
    """Digests of the tasks that both machines have, find good, and grade alike, in the first report's order."""
    dropped: tuple[Difference, ...]
    """All others, those of the first report first."""


def compare(first: AuditReport, second: AuditReport) -> Comparison:
    """Keeps what two audits agree on.

    Raises:
        ValueError: the reports cannot be compared: other graders, or other numbers of repetitions.
    """
    if first.grader != second.grader:
        raise ValueError(
            f"the reports are of two graders, {first.grader[:12]} and {second.grader[:12]}: "
            "audit with the same version on both machines"
        )
    if first.repetitions != second.repetitions:
        raise ValueError(
            f"one report has {first.repetitions} repetitions, the other {second.repetitions}: "
            "audit with as many on both machines"
        )
    ours = {task.task: task for task in first.tasks}
    others = {task.task: task for task in second.tasks}
    kept: list[str] = []
    dropped: list[Difference] = []
    for digest, task in (ours | others).items():
        reason = _reason(ours.get(digest), others.get(digest), first, second)
        if reason is None:
            kept.append(digest)
        else:
            dropped.append(Difference(id=task.id, task=digest, reason=reason))
    return Comparison(kept=tuple(kept), dropped=tuple(dropped))


def _reason(one: AuditedTask | None, other: AuditedTask | None, first: AuditReport, second: AuditReport) -> str | None:
    if one is None or other is None:
        missing = second if other is None else first
        return f"only one report has it; that of {_name(missing)} has not"
    for task, report in ((one, first), (other, second)):
        if task.dropped is not None:
            return f"dropped on {_name(report)}: {task.dropped}"
    if one.result == other.result:
        return None
    differing = sorted(
        test
        for ours, theirs in zip((*one.gold, *one.nothing), (*other.gold, *other.nothing), strict=True)
        for test, _ in ours.not_passed.items() ^ theirs.not_passed.items()
    )
    return f"{_name(first)} and {_name(second)} differ in {list(dict.fromkeys(differing))[:3]}"


def _name(report: AuditReport) -> str:
    return f"{report.machine.architecture}, {report.machine.python}"
