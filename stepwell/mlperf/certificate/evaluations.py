"""The evaluations of a run on the set that decides, and the version that passed."""

from typing import NamedTuple

from stepwell.audit.record import RunRecord
from stepwell.events import ValidationRecorded
from stepwell.mlperf.certificate.recipe import CertifiedRecipe

DECIDING = "main"
"""The set whose result ends a run."""


class Scored(NamedTuple):
    """A result that the run recorded."""

    seq: int
    """Its place in `run/<run>`."""
    event: ValidationRecorded
    """What it is."""


def scored(record: RunRecord) -> list[Scored]:
    """Results on the set that decides, as they were recorded."""
    every = record.run_events.every(ValidationRecorded)
    return [Scored(seq, event) for seq, event in every if event.dataset == DECIDING]


def passing(record: RunRecord, recipe: CertifiedRecipe) -> Scored | None:
    """The lowest version above the target, whichever was evaluated first; version 0 is none of them."""
    target = recipe.validation.target
    above = [
        each for each in scored(record) if target is not None and each.event.version > 0 and each.event.pass_k > target
    ]
    return min(above, key=lambda each: each.event.version, default=None)


def required(record: RunRecord, recipe: CertifiedRecipe) -> list[int]:
    """Versions that had to be evaluated: inline those that are due up to the one that passed, offline all."""
    passed = passing(record, recipe)
    newest = recipe.run.max_steps if record.finished is None else record.finished.version
    is_over = passed is not None and recipe.validation.mode == "inline"
    last = passed.event.version if passed is not None and is_over else newest
    return [version for version in range(last + 1) if recipe.is_required(version)]
