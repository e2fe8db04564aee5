"""Lines that stay: one a step, validation, version 0, recovery, failure, stall, gate, operator's act, in the order they
are seen."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from cli.live.waits import hold_words, stall_words
from cli.live.words import duration, number, with_interval
from stepwell.contracts.operators import OpenHold
from stepwell.events import OperatorActed
from stepwell.health.fold import RecordedStall
from stepwell.report.digests import short_digests
from stepwell.report.picture import RunPicture
from stepwell.report.rollouts import Recovery, RolloutFailure
from stepwell.report.standing import act_words
from stepwell.report.steps import StepPicture
from stepwell.report.validations import ValidationPicture


class Lines:
    """Remembers what was told, and tells the rest."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def new(self, picture: RunPicture) -> list[str]:
        """Lines for what is new in a picture, by the time at which it happened."""
        found = [told for told in _all(picture) if told.key not in self._told]
        self._told.update(told.key for told in found)
        return [told.line() for told in sorted(found, key=lambda told: told.time_s)]


@dataclass(frozen=True)
class _Told:
    """Something that is worth a line."""

    time_s: float
    key: str
    line: Callable[[], str]


def _all(picture: RunPicture) -> Iterator[_Told]:
    if picture.warm_up is not None and picture.warmed_up_s is not None:
        yield _Told(picture.warmed_up_s, "version 0", lambda: version_0_line(picture))
    for (version, dataset), shown in picture.validations.items():
        if shown.done and shown.recorded_s is not None:
            line = partial(validation_line, shown, picture.target)
            yield _Told(shown.recorded_s, f"validation {version} {dataset}", line)
    for step in picture.done_steps:
        if step.trained_s is not None:
            yield _Told(step.trained_s, f"step {step.step}", partial(step_line, step, picture.mismatch_bound))
    for recovery in picture.recoveries:
        key = f"recovery {recovery.kind} {recovery.stream} {recovery.time_s}"
        yield _Told(recovery.time_s, key, partial(_recovery_line, recovery))
    for failure in picture.rollouts.failures:
        yield _Told(failure.time_s, f"failure {failure.stream}", partial(_failure_line, failure))
    yield from _of_standing(picture)


def _of_standing(picture: RunPicture) -> Iterator[_Told]:
    """What holds the run up, and who let it go on."""
    standing = picture.standing
    for time_s, act in standing.acts:
        yield _Told(time_s, act.key(), partial(_operator_line, act))
    for time_s, raised in standing.raised:
        hold = OpenHold(hold=raised.hold, cause=raised.cause)
        yield _Told(time_s, raised.key(), partial(hold_words, picture.run, hold))
    for stall in standing.health.stalls:
        yield _Told(stall.began_s, f"stall {stall.number}", partial(stall_words, stall.stall))
        if stall.ended_s is not None:
            yield _Told(stall.ended_s, f"stall {stall.number} over", partial(_stall_over_line, stall))


def _recovery_line(recovery: Recovery) -> str:
    return f"recovery  {recovery.kind}: {recovery.stream}, {recovery.detail}"


def _failure_line(failure: RolloutFailure) -> str:
    return f"failure  {failure.stream}: {failure.failure}: {failure.cause}"


def _operator_line(act: OperatorActed) -> str:
    return f"operator  {act_words(act)} by {act.who}" + (f": {act.reason}" if act.reason else "")


def _stall_over_line(stall: RecordedStall) -> str:
    assert stall.ended_s is not None
    return f"no longer waiting for {stall.what}, after {duration(stall.ended_s - stall.began_s)}"


def version_0_line(picture: RunPicture) -> str:
    """How version 0 came to be."""
    assert picture.warm_up is not None
    made = picture.warm_up
    loss = f"  loss {made.metrics['loss']:.3f}" if "loss" in made.metrics else ""
    return f"version 0  {short_digests(made.origin)}{loss}  {duration(made.duration_s)}"


def step_line(step: StepPicture, bound: float | None) -> str:
    """One training step; a mismatch above its bound is said to be."""
    above = bound is not None and step.mismatch_mean is not None and step.mismatch_mean > bound
    parts = [
        f"step {step.step:<4}",
        f"reward {number(step.reward_mean)}",
        f"loss {number(step.loss, '+.4f')}",
        f"grad {number(step.grad_norm)}",
        f"|Δlogp| {number(step.mismatch_mean, '.1e')}" + (f" ABOVE ITS BOUND {bound:.0e}" if above else ""),
        f"tokens {number(step.generated_tokens, ',')}",
        f"{step.masked} of {step.rollouts} masked" if step.masked else "",
        number(step.step_s if step.step_s is not None else step.training_s, ".1f") + " s",
    ]
    return "  ".join(part for part in parts if part)


def validation_line(validation: ValidationPicture, target: float | None) -> str:
    """One validation with its intervals; for the set that decides, how far it is from the target."""
    parts = [
        f"version {validation.version} on {validation.dataset}",
        f"pass@1 {with_interval(validation.pass_1, validation.pass_1_interval)}",
        f"pass@{validation.k} {with_interval(validation.pass_k, validation.pass_k_interval)}",
    ]
    if validation.pass_all is not None:
        parts.append(f"pass^{validation.k} {with_interval(validation.pass_all, validation.pass_all_interval)}")
    if target is not None and validation.pass_k is not None and validation.dataset == "main":
        parts.append(f"target {target:g} {'reached' if validation.pass_k > target else 'not reached'}")
    if validation.opened_s is not None and validation.recorded_s is not None:
        parts.append(duration(validation.recorded_s - validation.opened_s))
    return "  ".join(parts)
