"""A picture as JSON, for programs."""

from dataclasses import asdict
from typing import Any

from stepwell.report.picture import RunPicture
from stepwell.report.steps import StepPicture
from stepwell.report.validations import ValidationPicture


def snapshot(picture: RunPicture) -> dict[str, Any]:
    """What is known of a run, in JSON form; times in seconds since the epoch, durations in seconds."""
    split, rollouts = picture.time_split(), picture.rollouts
    return {
        "run": picture.run,
        "recipe": picture.recipe_name,
        "recipe_digest": picture.recipe_digest,
        "created_s": picture.created_s,
        "newest_s": picture.newest_s,
        "end": None if picture.finished is None else picture.finished.end.value,
        "end_cause": None if picture.finished is None else picture.finished.cause,
        "version": picture.version,
        "served": picture.served,
        "target": picture.target,
        "max_steps": picture.max_steps,
        "mismatch_bound": picture.mismatch_bound,
        "eta_s": picture.eta_s(),
        "head": {"seq": picture.head_seq, "hash": picture.head_hash},
        "warm_up_s": None if picture.warm_up is None else picture.warm_up.duration_s,
        "time": None
        if split is None
        else {
            "wall_s": split.wall_s,
            "overhead_s": split.overhead_s,
            "overhead": split.overhead,
            "longest_idle_s": split.longest_idle_s,
            **{f"{activity}_s": seconds for activity, seconds in split.by_activity_s.items()},
        },
        "tokens": {
            "generated": rollouts.tokens.total,
            "recent_per_s": rollouts.tokens.recent_per_s(picture.newest_s or 0.0),
        },
        "rollouts": {
            "begun": rollouts.begun,
            "in_flight": rollouts.in_flight,
            "grading": rollouts.grading,
            "graded": rollouts.graded,
            "passed": rollouts.passed,
            "failed": rollouts.failed,
            "reused_verdicts": rollouts.reused_verdicts,
        },
        "fates": {
            name: {
                "dispatched": fates.dispatched,
                "replaced": fates.replaced,
                "open": fates.open,
                **{fate.value: count for fate, count in sorted(fates.by_fate.items())},
                "causes": fates.causes,
            }
            for name, fates in (("training", picture.training_fates), ("validation", picture.validation_fates))
        },
        "lengths": [compared.as_json() for compared in picture.lengths],
        **_standing(picture),
        "recovery_work": asdict(picture.recovery_work),
        "recoveries": [{**asdict(each), "kind": each.kind.value} for each in picture.recoveries],
        "failures": [asdict(each) for each in rollouts.failures],
        "validations": [_validation(each) for name in picture.datasets for each in picture.results(name)],
        "steps": [_step(step) for step in picture.done_steps],
    }


def _standing(picture: RunPicture) -> dict[str, Any]:
    """What holds the run up, and what it has used."""
    standing = picture.standing
    pause, usage = standing.pause, standing.usage
    return {
        "stalls": [asdict(stall) for stall in standing.health.stalls],
        "holds": [hold.model_dump(mode="json") for hold in standing.operators.holds],
        "pause": None if pause is None else asdict(pause),
        "usage": None if usage is None else usage.model_dump(mode="json"),
        "limits": picture.limits,
        "settings": standing.operators.settings,
    }


def _step(step: StepPicture) -> dict[str, Any]:
    return {**asdict(step), "step_s": step.step_s}


def _validation(validation: ValidationPicture) -> dict[str, Any]:
    intervals = {
        "pass_1_interval": validation.pass_1_interval,
        "pass_k_interval": validation.pass_k_interval,
        "pass_all_interval": validation.pass_all_interval,
    }
    plain = {name: value for name, value in asdict(validation).items() if name not in intervals}
    for name, interval in intervals.items():
        plain[name] = None if interval is None else [interval.low, interval.high]
    return plain
