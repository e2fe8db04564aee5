"""Streams of named things, and names of what streams hold."""

from stepwell.audit.dispatched import AuditedStep, steps_of
from stepwell.audit.provenance.reference import NoSuchThing, Ref
from stepwell.audit.provenance.source import Fact, RunSource
from stepwell.audit.taint import CLEAN, Taint, standing_marks, taint_of
from stepwell.events import (
    GroupClosed,
    GroupOpened,
    StepAdmitted,
    StepDispatched,
    StepTrained,
    ValidationOpened,
    VersionCreated,
)
from stepwell.events.group_closed import Fate
from stepwell.events.streams import (
    parse_rollout_stream,
    prompt_stream,
    quarantine_stream,
    rollout_stream,
    run_stream,
    validation_scope,
    validation_stream,
    weights_stream,
)
from stepwell.rl.batching import ManifestSample


def steps(source: RunSource) -> dict[int, AuditedStep]:
    """Dispatched steps, by number."""
    return steps_of(source.run, ((fact.seq, fact.event) for fact in source.stream(run_stream(source.run))))


def versions(source: RunSource) -> dict[int, Fact[VersionCreated] | Fact[StepTrained]]:
    """What made each version, by its number."""
    stream = weights_stream(source.run)
    made: dict[int, Fact[VersionCreated] | Fact[StepTrained]] = {
        fact.event.version: fact for fact in source.every(stream, VersionCreated)
    }
    return made | {fact.event.version: fact for fact in source.every(stream, StepTrained)}


def dispatch(source: RunSource, step: int) -> Fact[StepDispatched] | None:
    """What handed a step's prompts out."""
    return next((fact for fact in source.of_run(StepDispatched) if fact.event.step == step), None)


def admission(source: RunSource, step: int) -> Fact[StepAdmitted] | None:
    """What fixed a step's batch."""
    return next((fact for fact in source.of_run(StepAdmitted) if fact.event.step == step), None)


def validations(source: RunSource) -> list[Fact[ValidationOpened]]:
    """Every validation that began, in order of version and set."""
    opened = [fact for name in source.names("validation") for fact in source.every(name, ValidationOpened)]
    return sorted(opened, key=lambda fact: (fact.event.version, fact.event.dataset != "main", fact.event.dataset))


def validation_of(source: RunSource, scope: str) -> Fact[ValidationOpened] | None:
    """The validation of a scope as `v24-main`."""
    return source.first(f"validation/{source.run}/{scope}", ValidationOpened)


def generated_by(source: RunSource, scope: str) -> int | None:
    """The one version that generates the rollouts of a scope; None where there is no such step or validation."""
    if scope.isdigit():
        found = dispatch(source, int(scope))
        return None if found is None else found.event.version
    opened = validation_of(source, scope)
    return None if opened is None else opened.event.version


def tasks_of(source: RunSource, scope: str) -> list[str]:
    """Digest of each prompt's task in a scope, by index."""
    if scope.isdigit():
        step = steps(source).get(int(scope))
        return [] if step is None else [prompt.task for prompt in step.prompts]
    opened = validation_of(source, scope)
    return [] if opened is None else list(opened.event.tasks)


def scopes(source: RunSource) -> list[str]:
    """Every scope of the run: its steps, then its validations."""
    named = [validation_scope(fact.event.version, fact.event.dataset) for fact in validations(source)]
    return [str(step) for step in sorted(steps(source))] + named


def groups_of(source: RunSource, scope: str) -> list[Ref]:
    """The groups of a scope."""
    return [Ref("group", (scope, str(prompt))) for prompt in range(len(tasks_of(source, scope)))]


def group_stream(source: RunSource, ref: Ref) -> str:
    """A group's stream."""
    return prompt_stream(source.run, ref.parts[0], int(ref.parts[1]))


def stream_of(source: RunSource, ref: Ref) -> str:
    """The stream of a rollout, or of the one that something is part of."""
    return rollout_stream(source.run, ref.parts[0], int(ref.parts[1]), int(ref.parts[2]))


def rollout_of(stream: str) -> Ref:
    """The rollout of a stream."""
    name = parse_rollout_stream(stream)
    return Ref("rollout", (name.scope, str(name.prompt), str(name.sample)))


def rollouts_of(source: RunSource, group: Ref) -> list[Ref]:
    """Rollouts of a group: those that it closed with, else those that it wants."""
    stream = group_stream(source, group)
    closed = source.first(stream, GroupClosed)
    if closed is not None:
        return sorted((rollout_of(child.stream) for child in closed.event.children), key=lambda ref: int(ref.parts[2]))
    opened = source.first(stream, GroupOpened)
    return [Ref("rollout", (*group.parts, str(sample))) for sample in range(opened.event.samples if opened else 0)]


def sample_of(source: RunSource, rollout: str) -> ManifestSample | None:
    """A rollout's part in its step's batch, by its stream; None where it has none."""
    scope = parse_rollout_stream(rollout).scope
    admitted = admission(source, int(scope)) if scope.isdigit() else None
    return None if admitted is None else source.samples(admitted.event.manifest).get(rollout)


def taint(source: RunSource) -> Taint:
    """What of the run is tainted."""
    quarantine = source.stream(quarantine_stream(source.run))
    marks = standing_marks((fact.seq, fact.event) for fact in quarantine)
    return (
        taint_of(marks, max(versions(source), default=-1), lambda rollout: _is_trained(source, rollout))
        if marks
        else CLEAN
    )


def validation_ref(fact: Fact[ValidationOpened]) -> Ref:
    """The name of a validation."""
    return Ref("validation", (str(fact.event.version), fact.event.dataset))


def validation_name(source: RunSource, ref: Ref) -> str:
    """A validation's stream."""
    return validation_stream(source.run, int(ref.parts[0]), ref.parts[1])


def refuse(ref: Ref, has: str) -> NoSuchThing:
    """An error for a thing that the run has not."""
    return NoSuchThing(f"there is no {ref} in this run: {has}")


def counted(numbers: list[int], what: str, plural: str) -> str:
    """What there is, in words: `it has the versions 0 to 25`."""
    if not numbers:
        return f"it has no {what} yet"
    return (
        f"it has the {what} {numbers[0]}" if len(numbers) == 1 else f"it has the {plural} {numbers[0]} to {numbers[-1]}"
    )


def _is_trained(source: RunSource, rollout: str) -> bool | None:
    name = parse_rollout_stream(rollout)
    closed = source.first(prompt_stream(source.run, name.scope, name.prompt), GroupClosed)
    return None if closed is None else closed.event.fate is Fate.TRAINED
