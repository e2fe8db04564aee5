"""Both checks that are programs were made before anything was scored, and their verdicts follow from their reports."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events import CheckReached, PassScored, SubmissionTaken, TrialScored
from stepwell.ptb.identity.report import IdentityReport
from stepwell.ptb.trials.audited import CONTAMINATION, IDENTITY, AuditedTrial, RunSetRecord

HOLDS = "identity and contamination of a submitted model were checked before it was scored, with the basis' versions"
UNIT = "checks"

CHECKS = ("identity", "contamination")
UNREADABLE = "unreadable"
"""Verdict on a model that no check of identity can read: what its report says is why."""


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each trial of an agent."""
    for trial in record.trials:
        for seq, reached in trial.stream.every(CheckReached):
            _check_verdict(record, trial, seq, reached, tally)
        _check_all_there(trial, tally)


def _check_all_there(trial: AuditedTrial, tally: Tally) -> None:
    submitted = trial.counting(SubmissionTaken)
    scored = trial.counting(PassScored)[:1] or trial.counting(TrialScored)
    if trial.created.role != "agent" or not scored or not submitted or submitted[-1][1].failure:
        return
    done = {reached.check for seq, reached in trial.counting(CheckReached) if seq < scored[0][0]}
    for name in CHECKS:
        tally.expect(name in done, trial.name, scored[0][0], f"scored without the check of {name} before it")


def _check_verdict(record: RunSetRecord, trial: AuditedTrial, seq: int, reached: CheckReached, tally: Tally) -> None:
    if record.basis is not None:
        is_known = reached.version in record.basis.checks
        what = f"{reached.check} checked as {reached.version!r}, the basis has {', '.join(record.basis.checks)}"
        tally.expect(is_known, trial.name, seq, what)
    said = (reached.verdict, reached.passed)
    if reached.check == "contamination":
        report = record.read(reached.report, CONTAMINATION)
        found = None if report is None else (report.verdict.value, report.passed)
    else:
        read = record.read(reached.report, IDENTITY)
        found = (read.verdict.value, read.passed) if isinstance(read, IdentityReport) else (UNREADABLE, False)
        found = None if read is None else found
    if found is not None and found != said:
        what = f"{reached.check} is {said[0]!r}, passed {said[1]}; its report makes it {found[0]!r}, {found[1]}"
        tally.findings.append(Finding(trial.name, seq, what))
