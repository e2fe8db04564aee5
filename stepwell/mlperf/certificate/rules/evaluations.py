"""Each required evaluation took place, once, whole, and no other did.

That an evaluation is of one pinned version, down to each token, hold the rules `versions`, `fates`, `attestations` and
`validations` of the audit.
"""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord
from stepwell.events import ValidationClosed, ValidationOpened
from stepwell.events.streams import run_stream, validation_stream
from stepwell.mlperf.certificate.evaluations import DECIDING, required, scored
from stepwell.mlperf.certificate.recipe import CertifiedRecipe, recipe_of

HOLDS = "each version that had to be evaluated was, with every sample of every task, and no other was"
UNIT = "evaluations"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each required version, then to each that was evaluated."""
    recipe = recipe_of(record)
    if recipe is None:
        return  # the rule `whole` says so
    found, wanted = scored(record), required(record, recipe)
    last = record.run_events.child.seq
    for version in wanted:
        is_there = any(each.event.version == version for each in found)
        what = f"no evaluation of version {version} on {DECIDING} is recorded up to here, and the schedule asks for it"
        tally.expect(is_there, run_stream(record.run), last, what)
    is_due = recipe.is_required
    for seq, event in found:
        if not is_due(event.version):
            what = f"version {event.version} was evaluated on {DECIDING}, which the schedule does not ask for"
            tally.findings.append(Finding(run_stream(record.run), seq, what))
        _check_whole(record, recipe, event.version, tally)
    if recipe.validation.mode == "inline":
        _check_order([(each.seq, each.event.version) for each in found], record, tally)


def _check_whole(record: RunRecord, recipe: CertifiedRecipe, version: int, tally: Tally) -> None:
    stream = record.streams.get(validation_stream(record.run, version, DECIDING))
    opening, closing = (stream.first(ValidationOpened), stream.first(ValidationClosed)) if stream else (None, None)
    if stream is None or opening is None or closing is None:
        return  # the rules `commitments` and `validations` say so
    seq, opened = opening
    samples = recipe.validation.samples
    pinned = (opened.version, opened.dataset)
    tally.expect(
        pinned == (version, DECIDING), stream.name, seq, f"pins (version, set) {pinned}, wanted {(version, DECIDING)}"
    )
    if opened.samples != samples:
        what = f"takes {opened.samples} samples a task, the recipe says {samples}"
        tally.findings.append(Finding(stream.name, seq, what))
    short = [(task, graded) for task, graded in enumerate(closing[1].graded) if graded != samples]
    for task, graded in short[:1]:
        what = f"task {task} has {graded} scored samples, wanted {samples}"
        tally.findings.append(Finding(stream.name, closing[0], what))


def _check_order(found: list[tuple[int, int]], record: RunRecord, tally: Tally) -> None:
    newest = -1
    for seq, version in found:
        if version <= newest:
            what = f"version {version} was evaluated after version {newest}, inline they follow the training"
            tally.findings.append(Finding(run_stream(record.run), seq, what))
        newest = max(newest, version)
