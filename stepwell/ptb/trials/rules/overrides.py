"""Whoever decided otherwise than checks and judges said who, why, and on what: something that was found."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events import CheckReached, JudgementReached
from stepwell.ptb.trials.audited import AuditedTrial, RunSetRecord

HOLDS = "each override says who and why, and is for a report or votes that the trial has"
UNIT = "overrides"

LEAST_REASON = 10
"""Characters of a reason that a reader of the result can check."""


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each override."""
    trials = {trial.cell: trial for trial in record.trials}
    for stream in record.stored.of_kind("override"):
        cell = stream.name.rpartition("/")[2]
        found = _found(trials[cell]) if cell in trials else set[tuple[str, str]]()
        for place, (seq, override) in enumerate(record.overrides(cell)):
            tally.expect(bool(override.by.strip()), stream.name, seq, "decided by nobody")
            if len(override.reason.strip()) < LEAST_REASON:
                what = f"decided by {override.by} for the reason {override.reason!r}, which nobody can check"
                tally.findings.append(Finding(stream.name, seq, what))
            if override.number != place:
                what = f"has the number {override.number}, it is the {place + 1}. of its trial"
                tally.findings.append(Finding(stream.name, seq, what))
            if (override.about, override.of) not in found:
                what = f"is for {override.of} about {override.about}, which the trial has not"
                tally.findings.append(Finding(stream.name, seq, what))


def _found(trial: AuditedTrial) -> set[tuple[str, str]]:
    """What can be decided on: of starts that are void too, since a person may have decided before the host was lost."""
    reports: set[tuple[str, str]] = {(each.check, each.report) for _, each in trial.stream.every(CheckReached)}
    return reports | {(each.charge, each.judged) for _, each in trial.stream.every(JudgementReached)}
