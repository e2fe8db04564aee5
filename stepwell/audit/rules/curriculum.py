"""Prompts come in the order that was fixed when the run began: steps from the curriculum, replacements from the
reserve, validations from their sets."""

from pydantic import ValidationError

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord
from stepwell.events import PromptReplaced, ValidationOpened
from stepwell.tasks.manifest import TaskManifest

HOLDS = "each prompt is the one that the run's list of tasks has at its place, replacements from the reserve in order"
UNIT = "prompts"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each step, each replacement and each validation."""
    if record.manifest is None or record.recipe is None:
        _explain(record, tally)
        return
    train, prompts = record.manifest.train, record.recipe.run.prompts_per_step
    for step in record.steps.values():
        first = step.event.step * prompts
        wanted = [entry.blob for entry in train[first : first + prompts]]
        _compare(step.event.tasks, wanted, f"step {step.event.step}", record.run_events.name, step.seq, tally)
    _check_reserve(record, record.manifest, record.recipe.failures.reserve, tally)
    for validation in record.of_kind("validation"):
        for seq, opened in validation.every(ValidationOpened):
            _compare(opened.tasks, _dataset(record.manifest, opened), opened.dataset, validation.name, seq, tally)


def _explain(record: RunRecord, tally: Tally) -> None:
    """The list of tasks is present, and no list of tasks; else the rule `chains`, `blobs` or `settings` speaks."""
    created = record.created
    blob = record.documents.get(created.task_set) if created else None
    if created is None or blob is None:
        return
    try:
        TaskManifest.model_validate_json(blob)
    except ValidationError as error:
        what = f"blob {created.task_set} is no list of tasks: {error.errors()[0]['msg']}"
        tally.findings.append(Finding(record.run_events.name, 0, what))


def _dataset(manifest: TaskManifest, opened: ValidationOpened) -> list[str]:
    """Tasks of a validation; none for a set that there is not."""
    try:
        return [entry.blob for entry in manifest.dataset(opened.dataset)]
    except KeyError:
        return []


def _compare(found: list[str], wanted: list[str], what: str, stream: str, seq: int, tally: Tally) -> None:
    """Of tasks that differ the first is named."""
    tally.checked += len(found)
    if found == wanted:
        return
    at = next((place for place, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), None)
    said = (
        f"has {len(found)} prompts of {what}, the run's list of tasks {len(wanted)}"
        if at is None
        else f"prompt {at} of {what} is task {found[at]}, the run's list of tasks says {wanted[at]}"
    )
    tally.findings.append(Finding(stream, seq, said))


def _check_reserve(record: RunRecord, manifest: TaskManifest, declared: int, tally: Tally) -> None:
    reserve, stream = [entry.blob for entry in manifest.reserve], record.run_events
    if len(reserve) != declared:
        what = f"its recipe declares a reserve of {declared} prompts, its list of tasks has {len(reserve)}"
        tally.findings.append(Finding(stream.name, 0, what))
    used = sorted(stream.every(PromptReplaced), key=lambda placed: (placed[1].step, placed[1].prompt))
    for place, (seq, replaced) in enumerate(used):
        wanted = reserve[place] if place < len(reserve) else f"none: it has {len(reserve)}"
        tally.expect(
            replaced.task == wanted,
            stream.name,
            seq,
            f"replacement {place} of the run is task {replaced.task}, the reserve has there {wanted}",
        )
