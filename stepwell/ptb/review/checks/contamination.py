"""Q3: how public the tasks are, what was done about it trial by trial, and whether that would have found anything."""

from collections.abc import Sequence
from itertools import pairwise

from stepwell.ptb.judges.votes import fleiss_kappa
from stepwell.ptb.review.deciding import report
from stepwell.ptb.review.finding import Evidence, Finding
from stepwell.ptb.review.record import Trial
from stepwell.ptb.review.setup_record import SetupRecord
from stepwell.ptb.review.subject import Subject, short

TOLERATED = 3
"""Accidental rows that the rules allow."""
PLANTED = ("question only", "answer only", "chat messages", "paraphrase", "changed numbers")
"""Leaks that a check must have been tried on: a published tool is blind to each."""


def contamination(subject: Subject) -> Finding:
    """Q3. Its label says how much of the evidence there is, and how many trials were found contaminated."""
    told = [each for key, setup in subject.setups.items() for each in _tests(setup, short(key))]
    told += _public(subject)
    told += _found(subject.trials)
    told += _lacking(subject.trials)
    told += _agreement(subject.trials)
    weight = sum(each.weight for each in subject.trials if each.cell.flags)
    complete = not any(each.says.startswith("not known") for each in told)
    flagged = sum(bool(each.cell.flags) for each in subject.trials)
    label = f"Evidence {'complete' if complete else 'incomplete'}, {flagged} of {len(subject.trials)} flagged"
    return report("Q3", f"checks, votes, data and logs of {len(subject.trials)} trials", label, told, weight)


def _public(subject: Subject) -> list[Evidence]:
    told: list[Evidence] = []
    for key, benchmark, _ in subject.places():
        public = (subject.setups[key].publicness or {}).get(benchmark)
        says = "not known: how many of its tasks and solutions are public"
        if public is not None:
            says = f"public: {public.tasks:.0%} of its tasks, {public.solutions:.0%} of its solutions"
        told.append(Evidence(says=says, where=(benchmark,)))
    return told


def _tests(setup: SetupRecord, where: str) -> list[Evidence]:
    told = [
        Evidence(says=f"planted, {each.leak}: {each.found} of {each.planted} found", where=(where,))
        for each in setup.planted or ()
    ]
    lacking = [leak for leak in PLANTED if leak not in {each.leak for each in setup.planted or ()}]
    if lacking:
        told.append(Evidence(says=f"not known: whether its check finds {', '.join(lacking)}", where=(where,)))
    told += [
        Evidence(says=f"clean, {each.rows_of}: {each.flagged} of {each.rows} rows flagged", where=(where,))
        for each in setup.controls or ()
    ]
    if not setup.controls:
        told.append(Evidence(says="not known: what its check makes of clean rows", where=(where,)))
    return told


def _found(trials: Sequence[Trial]) -> list[Evidence]:
    """What each check found, in sum."""
    checked = [each for each in trials if each.record.contamination is not None]
    told: list[Evidence] = []
    for verdict in ("clean", "tolerated", "contaminated", "nothing scanned"):
        of = [each for each in checked if each.record.contamination and each.record.contamination.verdict == verdict]
        if of:
            told.append(Evidence(says=f"check of their files: {verdict}", where=_names(of)))
    scanned = sum(each.record.contamination.scanned_rows for each in checked if each.record.contamination)
    unscanned = sum(each.record.contamination.unscanned for each in checked if each.record.contamination)
    told.append(Evidence(says=f"{scanned} rows scanned, {unscanned} not, in {len(checked)} trials"))
    over = [each for each in checked if each.record.contamination and each.record.contamination.leaks > TOLERATED]
    unflagged = [each for each in over if not each.cell.flags]
    if unflagged:
        told.append(Evidence(says=f"more than {TOLERATED} leaked rows, and no flag", where=_names(unflagged)))
    for each in trials:
        if each.cell.flags:
            reasons = "; ".join(f"{flag.check}: {flag.reason}" for flag in each.cell.flags)
            told.append(Evidence(says=f"flagged: {reasons}", where=(each.cell.trial,)))
    return told


def _lacking(trials: Sequence[Trial]) -> list[Evidence]:
    told: list[Evidence] = []
    for says, of in (
        ("a check of its files", [each for each in trials if each.record.contamination is None]),
        ("votes of judges", [each for each in trials if each.record.votes is None]),
        ("what it was trained on", [each for each in trials if each.record.datasets is None]),
        ("a log of its requests", [each for each in trials if not _is_logged(each)]),
        ("weights compared with the base's", [each for each in trials if not _is_compared(each)]),
    ):
        if of:
            told.append(Evidence(says=f"not known: {says}", where=_names(of)))
    nameless = [each for each in trials if any(data.digest is None for data in each.record.datasets or ())]
    if nameless:
        told.append(Evidence(says="not known: digests of data that it was trained on", where=_names(nameless)))
    return told


def _agreement(trials: Sequence[Trial]) -> list[Evidence]:
    """Fleiss' kappa of all charges on which as many voted as mostly do."""
    whole: list[list[bool]] = []
    overridden: list[str] = []
    for trial in trials:
        for vote in trial.record.votes or ():
            cast = [each for each in vote.votes if each is not None]
            if len(cast) == len(vote.votes) and len(cast) > 1:
                whole.append(cast)
            if vote.override is not None:
                overridden.append(f"{trial.cell.trial} ({vote.charge})")
    told: list[Evidence] = []
    if whole:
        sizes = [len(each) for each in whole]
        usual = max(sorted(set(sizes)), key=sizes.count)
        alike = [each for each in whole if len(each) == usual]
        kappa = fleiss_kappa(alike)
        unanimous = sum(all(one == other for one, other in pairwise(each)) for each in alike)
        said = "not defined, as all votes are alike" if kappa is None else f"{kappa:.2f}"
        says = f"{usual} votes on each of {len(alike)} charges: {unanimous} unanimous, Fleiss' kappa {said}"
        told.append(Evidence(says=says))
    if overridden:
        told.append(Evidence(says="decided by a person", where=tuple(overridden)))
    return told


def _is_logged(trial: Trial) -> bool:
    network = trial.record.network
    return network is not None and (network.mode == "none" or network.log is not None)


def _is_compared(trial: Trial) -> bool:
    if trial.cell.failure is not None:
        return True
    return trial.record.identity is not None and trial.record.identity.weights_compared


def _names(trials: Sequence[Trial]) -> tuple[str, ...]:
    return tuple(each.cell.trial for each in trials)
