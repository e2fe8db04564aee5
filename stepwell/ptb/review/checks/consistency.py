"""C1 and C2: that scores of one key were made alike, and that none lacks a verdict."""

from collections.abc import Iterator

from stepwell.ptb.leaderboard import Basis
from stepwell.ptb.review.deciding import Case, decide, fine, noted, unknown, wrong
from stepwell.ptb.review.finding import Finding
from stepwell.ptb.review.record import Trial
from stepwell.ptb.review.subject import Subject, needs_judge, short


def keys(subject: Subject) -> Finding:
    """C1."""
    cases = [case for trial in subject.trials for case in _scored_alike(trial, subject.basis(trial))]
    if len(subject.bases) > 1:
        for key, setup in subject.setups.items():
            if setup.changelog is None:
                cases.append(unknown(short(key), 1.0, "what is different from the other keys"))
            else:
                cases.append(noted(short(key), setup.changelog))
    looked_at = f"what {len(subject.trials)} trials were scored with, against {len(subject.bases)} comparability keys"
    return decide("C1", looked_at, cases)


def coverage(subject: Subject) -> Finding:
    """C2. Anything that is wrong flags it: the rule is that such a trial is left out."""
    cases = [case for trial in subject.trials for case in _verdicts(trial, subject)]
    for key, setup in subject.setups.items():
        if setup.required is None:
            cases.append(unknown(short(key), 1.0, "which verdicts the rules require"))
    return decide("C2", f"verdicts on {len(subject.trials)} trials", cases, bar=0)


def _scored_alike(trial: Trial, basis: Basis) -> Iterator[Case]:
    cell, told = trial.cell, trial.record.scored_with
    if cell.raw is None:
        return
    wanted = {
        "data": basis.data[cell.benchmark],
        "scorer": basis.scorers[cell.benchmark],
        "template": basis.templates[cell.base_model],
        "environment": basis.environment,
    }
    if needs_judge(cell.benchmark):
        wanted["judge"] = basis.judge or ""
    found = {name: None if told is None else getattr(told, name) for name in wanted}
    if trial.record.rules is None:
        yield unknown(cell.trial, trial.weight, "the rules that its agent was told")
    elif trial.record.rules != basis.rules:
        says = f"its agent was told the rules {trial.record.rules}, and its key has {basis.rules}"
        yield wrong(cell.trial, trial.weight, says)
    for name, value in wanted.items():
        if found[name] is None:
            yield unknown(cell.trial, trial.weight, f"the {name} that it was scored with")
        elif found[name] != value:
            says = f"it was scored with the {name} {found[name]}, and its key has {value}"
            yield wrong(cell.trial, trial.weight, says)
        else:
            yield fine(cell.trial, trial.weight)


def _verdicts(trial: Trial, subject: Subject) -> Iterator[Case]:
    record, cell = trial.record, trial.cell
    flagged = bool(cell.flags)
    for name in subject.setup(trial).required or ():
        found = _verdict(trial, name)
        if found == "unknown":
            yield unknown(cell.trial, trial.weight, f"the verdict on {name}")
        elif found == "missing" and cell.status == "clean":
            yield wrong(cell.trial, trial.weight, f"it is scored without a verdict on {name}")
        elif found == "violation" and not flagged:
            yield wrong(cell.trial, trial.weight, f"the verdict on {name} is a violation, and it is not flagged")
        else:
            yield fine(cell.trial, trial.weight)
    for vote in record.votes or ():
        if vote.override is not None:
            yield noted(cell.trial, f"{vote.charge} was decided by a person: {vote.override}")


def _verdict(trial: Trial, name: str) -> str:
    """`none`, `violation`, `missing` where the check came to no verdict, or `unknown` where no record tells."""
    record = trial.record
    if name == "contamination":
        if record.contamination is None:
            return "unknown"
        verdict = record.contamination.verdict
        return {"contaminated": "violation", "nothing scanned": "missing"}.get(verdict, "none")
    if name == "identity":
        if record.identity is None:
            return "unknown" if trial.cell.failure is None else "none"  # without a model it has no identity
        return "none" if record.identity.passed else "violation"
    if record.votes is None:
        return "unknown"
    found = next((each for each in record.votes if each.charge == name), None)
    return "missing" if found is None or found.ruling == "unscored" else found.ruling
