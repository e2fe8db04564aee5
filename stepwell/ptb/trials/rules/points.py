"""A pass's points follow from what each of its answers was worth."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events import PassScored
from stepwell.ptb.evaluation.result import PassResult
from stepwell.ptb.scorers import Scored, collect
from stepwell.ptb.seeds import sample_seed
from stepwell.ptb.trials.audited import ANSWERS, AuditedTrial, RunSetRecord

HOLDS = "each pass's points are those of its stored answers, one to each item, each under a seed of its own"
UNIT = "answers"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each pass; all of a trial have the items of the first."""
    for trial in record.trials:
        first: list[str] | None = None
        for seq, scored in trial.stream.every(PassScored):
            answers = record.read(scored.answers, ANSWERS)
            if answers is None:
                continue  # the rules `blobs` and `documents` say so
            _check_pass(trial, seq, scored, answers, tally)
            items = sorted(one.item for one in answers.items)
            first = items if first is None else first
            if items != first or len(set(items)) != len(items):
                what = f"has {len(items)} answers, the first pass {len(first)}: wanted one to each of the same items"
                tally.findings.append(Finding(trial.name, seq, what))


def _check_pass(trial: AuditedTrial, seq: int, scored: PassScored, answers: PassResult, tally: Tally) -> None:
    tally.checked += len(answers.items)
    said = (scored.seed, scored.points, scored.unscored)
    found = (answers.seed, *_points(answers))
    if said != found:
        what = f"seed, points and unscored answers are {said}, its answers make them {found}"
        tally.findings.append(Finding(trial.name, seq, what))
    for one in answers.items:
        wanted = sample_seed(scored.seed, one.item)
        if one.seed != wanted:
            what = f"{one.item} was answered under the seed {one.seed}, wanted {wanted}"
            tally.findings.append(Finding(trial.name, seq, what))


def _points(answers: PassResult) -> tuple[float | None, int]:
    """Points and unscored answers, computed anew."""
    if not answers.items:
        return None, 0
    score = collect([Scored(one.value, one.why, one.weight, one.orders_agree) for one in answers.items])
    return None if score.value is None else 100 * score.value, score.unscored
