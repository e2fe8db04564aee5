"""E1 to E4: that agents could show what they can."""

from collections.abc import Iterator, Sequence

from stepwell.ptb.review.deciding import Case, decide, fine, noted, unknown, wrong
from stepwell.ptb.review.finding import Finding
from stepwell.ptb.review.record import Trial
from stepwell.ptb.review.subject import Subject

_OF_A_CONFIGURATION = ("effort", "scaffold_version", "model_resolved", "temperature")
"""Fields of a trial's record that all runs of a configuration share."""


def elicitation(subject: Subject) -> list[Finding]:
    """E1 to E4."""
    return [_ends(subject), _tests(subject), _ablations(subject), _submissions(subject)]


def _ends(subject: Subject) -> Finding:
    cases = [case for trial in subject.trials for case in _end(trial)]
    cases += _retries(subject.trials)
    for trial in subject.trials:
        if trial.cell.ended in ("time", "tokens", "money"):
            cases.append(noted(trial.cell.trial, f"ended by its {trial.cell.ended}"))
    return decide("E1", f"ends and interruptions of {len(subject.trials)} trials", cases)


def _end(trial: Trial) -> Iterator[Case]:
    name, weight, record = trial.cell.trial, trial.weight, trial.record
    if trial.cell.ended is None:
        yield unknown(name, weight, "what ended it")
    elif trial.cell.ended == "crash":
        yield wrong(name, weight, "it ended by a crash")
    else:
        yield fine(name, weight)
    if record.interruptions is None:
        yield unknown(name, weight, "whether anything interrupted it")
    for each in record.interruptions or ():
        kind = each.kind.replace("_", " ")
        if each.made_good:
            yield noted(name, f"{kind}, made good: {each.says}")
        else:
            yield wrong(name, weight, f"{kind}: {each.says}")
    if record.attempts is None:
        yield unknown(name, weight, "how often it was started")


def _retries(trials: Sequence[Trial]) -> Iterator[Case]:
    """One policy for all: where there are several, each trial that has not the most common one is wrong."""
    policies = [each.record.retry_policy for each in trials if each.record.retry_policy is not None]
    usual = max(sorted(set(policies)), key=policies.count) if policies else None
    for each in trials:
        policy = each.record.retry_policy
        if policy is None:
            yield unknown(each.cell.trial, each.weight, "the policy of retries")
        elif policy != usual:
            yield wrong(each.cell.trial, each.weight, f"retried by {policy}, others by {usual}")
        else:
            yield fine(each.cell.trial, each.weight)


def _tests(subject: Subject) -> Finding:
    cases = [_self_test(each) for each in subject.trials]
    return decide("E2", f"tests of the surroundings of {len(subject.trials)} trials", cases)


def _self_test(trial: Trial) -> Case:
    name, weight, test = trial.cell.trial, trial.weight, trial.record.self_test
    if test is None or not test.looked_at:
        return unknown(name, weight, "a test of its surroundings, and what it looked at")
    if not test.passed:
        return wrong(name, weight, "the test of its surroundings failed")
    if not test.before_the_clock:
        return wrong(name, weight, "its surroundings were tested on the agent's time")
    return fine(name, weight)


def _ablations(subject: Subject) -> Finding:
    """Anything that is wrong flags it: an average over unlike runs is of nothing."""
    groups: dict[str, list[Trial]] = {}
    for trial in subject.trials:
        if trial.cell.configuration is not None:
            groups.setdefault(trial.cell.configuration.digest, []).append(trial)
    cases = [case for trials in groups.values() for case in _alike(trials)]
    cases += [
        noted(row.configuration.agent, f"an ablation, not ranked: {'; '.join(row.differs_from_basis)}")
        for board in subject.boards
        for row in board.ablations
    ]
    return decide("E3", f"{len(groups)} configurations of {len(subject.trials)} trials", cases, bar=0)


def _alike(trials: Sequence[Trial]) -> Iterator[Case]:
    for name in _OF_A_CONFIGURATION:
        yield from _one_value(name, [(each, getattr(each.record, name)) for each in trials])
    yield from _one_value("limits", [(each, each.record.limits) for each in trials])
    for each in trials:
        of, record = each.cell.configuration, each.record
        if of is None:
            continue
        said = {
            "effort": (of.effort or "default", record.effort),
            "scaffold": (of.scaffold, record.scaffold),
            "scaffold's version": (of.scaffold_version, record.scaffold_version),
            "model": (of.model, record.model_resolved),
            "hours": (of.hours, None if record.limits is None else record.limits.hours),
        }
        for name, (row, run) in said.items():
            if run is not None and run != row:
                yield wrong(each.cell.trial, each.weight, f"its {name} was {run}, and its row says {row}")


def _one_value(name: str, values: Sequence[tuple[Trial, object]]) -> Iterator[Case]:
    told = [value for _, value in values if value is not None]
    usual = max(told, key=told.count) if told else None
    for trial, value in values:
        if value is None:
            yield unknown(trial.cell.trial, trial.weight, name.replace("_", " "))
        elif value != usual:
            yield wrong(
                trial.cell.trial, trial.weight, f"its {name.replace('_', ' ')} differ from its row's other runs"
            )
        else:
            yield fine(trial.cell.trial, trial.weight)


def _submissions(subject: Subject) -> Finding:
    cases = [_loads(each) for each in subject.trials]
    return decide("E4", f"submissions of {len(subject.trials)} trials", cases)


def _loads(trial: Trial) -> Case:
    name, weight, cell = trial.cell.trial, trial.weight, trial.cell
    if cell.failure is not None:
        return fine(name, weight, f"no model: {cell.failure}")
    if trial.record.model_loads is None:
        return unknown(name, weight, "whether what it submitted loads")
    if not trial.record.model_loads:
        return wrong(name, weight, "what it submitted does not load, and it does not count as failed")
    return fine(name, weight)
