"""A certified run began at version 0, went to its end, and was what its recipe says all the way.

Pauses, holds and limits cost time and change nothing. What does change a run is named: a setting, a stop, a fork.
Skipped prompts are the business of the rule `samples`.
"""

from pydantic import ValidationError

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord
from stepwell.audit.taint import taint_of_record
from stepwell.events import OperatorActed, RunFinished
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import quarantine_stream
from stepwell.mlperf.certificate.recipe import CertifiedRecipe, recipe_of

HOLDS = "the run began at version 0, ended by its target or its last step, and nobody changed it or marked its rollouts"
UNIT = "steps, acts and ends"

CHANGES = frozenset({"set", "stop", "reject"})
"""Acts of operators that make another run of it."""


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to the run's ends, to operators' acts, to what each step was dispatched with, and to marks."""
    stream = record.run_events
    _check_recipe(record, tally)
    tally.expect(record.fork is None, stream.name, 1, "goes on from another run, wanted one that begins with version 0")
    finished = stream.first(RunFinished)
    if finished is None:
        tally.expect(False, stream.name, stream.child.seq, "the run has not ended, wanted its RunFinished after this")
    else:
        seq, ended = finished
        is_well = ended.end in (RunEnd.TARGET, RunEnd.MAX_STEPS)
        what = f"the run ended as {ended.end.value}, wanted {RunEnd.TARGET.value} or {RunEnd.MAX_STEPS.value}"
        tally.expect(is_well, stream.name, seq, what)
    for seq, act in record.operators.every(OperatorActed):
        what = f"an operator asked to {act.action} ({act.arguments}): the run is no longer its recipe's"
        tally.expect(act.action not in CHANGES, record.operators.name, seq, what)
    for step in record.steps.values():
        what = f"step {step.event.step} was dispatched with other settings than the recipe's: {step.event.settings}"
        tally.expect(not step.event.settings, stream.name, step.seq, what)
    for mark in taint_of_record(record).marks:
        what = f"{mark.rollout} is marked as not to be trusted: {mark.reason}"
        tally.findings.append(Finding(quarantine_stream(record.run), mark.seq, what))


def _check_recipe(record: RunRecord, tally: Tally) -> None:
    if record.created is None or recipe_of(record) is not None:
        return
    try:
        CertifiedRecipe.model_validate(record.created.recipe)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        tally.findings.append(
            Finding(record.run_events.name, 0, f"its recipe says not enough: {where}: {first['msg']}")
        )
