"""What an evaluation says of itself is what its passes are."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events import PassScored, SubmissionEvaluated
from stepwell.ptb.evaluation.result import PassResult
from stepwell.ptb.trials.audited import ANSWERS, RESULT, AuditedTrial, RunSetRecord

HOLDS = "an evaluation's digest is that of its report with the answers of its passes, and its event says the same"
UNIT = "evaluations"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each evaluation that ended."""
    for trial in record.trials:
        for seq, evaluated in trial.stream.every(SubmissionEvaluated):
            _check(record, trial, seq, evaluated, tally)


def _check(record: RunSetRecord, trial: AuditedTrial, seq: int, evaluated: SubmissionEvaluated, tally: Tally) -> None:
    report = record.read(evaluated.report, RESULT)
    if report is None:
        return  # the rules `blobs` and `documents` say so
    said = (evaluated.failure, evaluated.max_tokens, evaluated.died)
    found = (report.failure or "", report.max_tokens, len(report.died))
    tally.expect(said == found, trial.name, seq, f"failure, tokens and deaths are {said}, its report has {found}")
    passes: list[PassResult] = []
    for _, one in trial.stream.every(PassScored):
        answers = record.read(one.answers, ANSWERS)
        if answers is None:
            return
        passes.append(answers)
    digest = report.model_copy(update={"passes": tuple(passes)}).digest
    if digest != evaluated.digest:
        what = f"digest is {evaluated.digest}, its report and passes make it {digest}"
        tally.findings.append(Finding(trial.name, seq, what))
