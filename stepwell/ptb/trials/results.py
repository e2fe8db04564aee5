"""What came of a trial: the leaderboard's record of it, as checks and judges have it, and as overrides leave it."""

from collections.abc import Sequence

from stepwell.events.trial_overridden import TrialOverridden
from stepwell.ptb.leaderboard.records import Cell, Configuration, Flag, Pass
from stepwell.ptb.trials.fold import TrialFold
from stepwell.ptb.trials.recipe import RunSetRecipe


class NotScored(ValueError):
    """A trial is not so far that it could have a record."""


def record_of(
    run_set: str, recipe: RunSetRecipe, basis: str, fold: TrialFold, overrides: Sequence[TrialOverridden] = ()
) -> Cell:
    """The record of a trial.

    Args:
        run_set: Its run set.
        recipe: Of the run set.
        basis: Comparability key of its scores.
        fold: Where it stands.
        overrides: What persons decided, in order; the last on a thing holds.

    Raises:
        NotScored: it is not evaluated, although it has a model.
        NoSuchJudgement: an override is for votes or a report that the trial has not.
    """
    failure = _failure(fold)
    evaluated = fold.evaluated
    if failure is None and evaluated is None:
        raise NotScored(f"{fold.created.cell} has a model and no evaluation yet: it has no record")
    passes = () if failure is not None else fold.passes
    points = [one.points for one in passes if one.points is not None]
    unscored = sum(one.unscored for one in passes)
    is_whole = bool(passes) and len(points) == len(passes)
    return Cell(
        basis=basis,
        role=fold.created.role,
        configuration=_configuration(recipe, fold),
        run_set=f"{run_set}/{fold.created.repetition}",
        trial=f"{run_set}/{fold.created.cell}",
        base_model=fold.created.base_model,
        benchmark=fold.created.benchmark,
        raw=sum(points) / len(points) if is_whole else None,
        passes=tuple(Pass(seed=one.seed, points=one.points) for one in passes if one.points is not None)
        if is_whole
        else (),
        unscored=unscored,
        max_tokens=None if evaluated is None or failure is not None else evaluated.max_tokens,
        flags=_flags(fold, overrides),
        undecided=_undecided(fold, overrides),
        failure=failure,
        ended=None if fold.ended is None else fold.ended.ended,
    )


def _failure(fold: TrialFold) -> str | None:
    """Why there is no model that can be scored, if there is none."""
    if fold.ended is not None and fold.ended.secrets:
        return f"a secret survived in its record: {', '.join(fold.ended.secrets)}"
    if fold.submission is not None and fold.submission.failure:
        return fold.submission.failure
    return fold.evaluated.failure or None if fold.evaluated is not None else None


def _flags(fold: TrialFold, overrides: Sequence[TrialOverridden]) -> tuple[Flag, ...]:
    """One for each check or charge that holds against the trial."""
    flags: list[Flag] = []
    for check in fold.checks:
        ruled = _ruling(check.report, check.check, overrides)
        if ruled is None and not check.passed:
            flags.append(Flag(check=check.check, reason=check.reason))
        elif ruled is not None and ruled.violation:
            flags.append(Flag(check=check.check, reason=_said(ruled)))
    for judgement in fold.judgements:
        ruled = _ruling(judgement.judged, judgement.charge, overrides)
        if ruled is None and judgement.outcome == "violation":
            flags.append(Flag(check=judgement.charge, reason="most judges found a violation"))
        elif ruled is not None and ruled.violation:
            flags.append(Flag(check=judgement.charge, reason=_said(ruled)))
    return tuple(flags)


def _undecided(fold: TrialFold, overrides: Sequence[TrialOverridden]) -> tuple[str, ...]:
    """Charges on which votes are missing, and nobody has decided."""
    return tuple(
        each.charge
        for each in fold.judgements
        if each.outcome == "unscored" and _ruling(each.judged, each.charge, overrides) is None
    )


def _ruling(of: str, about: str, overrides: Sequence[TrialOverridden]) -> TrialOverridden | None:
    found = [each for each in overrides if each.about == about and each.of == of]
    return found[-1] if found else None


def _said(ruled: TrialOverridden) -> str:
    return f"{ruled.by} decided: {ruled.reason}"


def _configuration(recipe: RunSetRecipe, fold: TrialFold) -> Configuration | None:
    if fold.created.role != "agent":
        return None
    agent = recipe.agent(fold.created.agent)
    return Configuration(
        agent=agent.name,
        model=agent.model,
        scaffold=agent.scaffold,
        scaffold_version=fold.tested.version if fold.tested is not None else "unknown",
        effort=agent.effort,
        hours=recipe.hours_of(agent),
        gpus=recipe.gpus,
        tokens=agent.tokens,
        money=agent.money,
        reprompt=agent.reprompt,
    )
