"""A trial's record is what its events make it, derived again."""

from pydantic import ValidationError

from stepwell.audit.finding import Finding, Tally
from stepwell.events import PassScored, TrialScored
from stepwell.ptb.leaderboard.records import Cell
from stepwell.ptb.trials.audited import AuditedTrial, RunSetRecord
from stepwell.ptb.trials.results import NotScored, record_of

HOLDS = "each raw score is the mean of its passes, and each record is derived again from the trial's events"
UNIT = "records"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each trial that has its record."""
    for trial in record.trials:
        for seq, scored in trial.stream.every(TrialScored):
            tally.checked += 1
            try:
                said = Cell.model_validate(scored.record)
            except ValidationError as error:
                tally.findings.append(Finding(trial.name, seq, f"is no record: {error.errors()[0]['msg']}"))
                continue
            _check_mean(trial, seq, said, tally)
            _check_derived(record, trial, seq, said, tally)


def _check_mean(trial: AuditedTrial, seq: int, said: Cell, tally: Tally) -> None:
    points = [one.points for _, one in trial.stream.every(PassScored)]
    known = [each for each in points if each is not None]
    if said.raw is None or not known or len(known) < len(points):
        return  # why there is none, the record that is derived again shows
    mean = sum(known) / len(known)
    if said.raw != mean:
        tally.findings.append(Finding(trial.name, seq, f"raw is {said.raw}, the mean of its passes {mean}"))


def _check_derived(record: RunSetRecord, trial: AuditedTrial, seq: int, said: Cell, tally: Tally) -> None:
    if record.recipe is None or record.basis is None or (trial.created.role == "agent" and trial.agent is None):
        return  # the rule `cells` says so
    try:
        derived = record_of(record.name, record.recipe, record.basis.key, trial.fold)
    except NotScored as error:
        tally.findings.append(Finding(trial.name, seq, f"has a record, and its events give none: {error}"))
        return
    except ValidationError as error:
        what = f"has a record, and its events contradict each other: {error.errors()[0]['msg']}"
        tally.findings.append(Finding(trial.name, seq, what))
        return
    found, wanted = said.model_dump(mode="json"), derived.model_dump(mode="json")
    for name, value in wanted.items():
        if found[name] != value:
            tally.findings.append(Finding(trial.name, seq, f"{name} is {found[name]}, its events make it {value}"))
