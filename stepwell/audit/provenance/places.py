"""Streams of named things, and names of what streams hold."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from stepwell.audit.dispatched import AuditedStep, steps_of
from stepwell.audit.provenance.reference import NoSuchThing, Ref
from stepwell.audit.provenance.source import Fact, RunSource
from stepwell.audit.taint import Taint, standing_marks, taint_of
from stepwell.events import (
    GroupClosed,
    GroupOpened,
    RunForked,
    StepAdmitted,
    StepDispatched,
    StepTrained,
    ValidationOpened,
    VersionCreated,
)
from stepwell.events.group_closed import Fate
from stepwell.events.run_forked import SharedVersion
from stepwell.events.streams import (
    parse_prompt_stream,
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

R = TypeVar("R")
P = ParamSpec("P")


def _remembered(function: Callable[Concatenate[RunSource, P], R]) -> Callable[Concatenate[RunSource, P], R]:
    """Computes once for as long as nothing more is read."""

    @wraps(function)
    def remembering(source: RunSource, *args: P.args, **kwargs: P.kwargs) -> R:
        return source.remembered((function.__name__, *args), lambda: function(source, *args, **kwargs))

    return remembering


@_remembered
def steps(source: RunSource) -> dict[int, AuditedStep]:
    """Dispatched steps, by number."""
    return steps_of(source.run, ((fact.seq, fact.event) for fact in source.stream(run_stream(source.run))))


@_remembered
def versions(source: RunSource) -> dict[int, Fact[VersionCreated] | Fact[StepTrained]]:
    """What made each version, by its number."""
    stream = weights_stream(source.run)
    made: dict[int, Fact[VersionCreated] | Fact[StepTrained]] = {
        fact.event.version: fact for fact in source.every(stream, VersionCreated)
    }
    return made | {fact.event.version: fact for fact in source.every(stream, StepTrained)}


@_remembered
def fork_of(source: RunSource) -> Fact[RunForked] | None:
    """What the run goes on from, if it is a fork."""
    return next(iter(source.of_run(RunForked)), None)


def shared_version(source: RunSource, version: int) -> SharedVersion | None:
    """A version of an ancestor that the run goes on from."""
    fork = fork_of(source)
    shared = fork.event.versions if fork else ()
    return next((each for each in shared if each.version == version), None)


@_remembered
def dispatch(source: RunSource, step: int) -> Fact[StepDispatched] | None:
    """What handed a step's prompts out."""
    return next((fact for fact in source.of_run(StepDispatched) if fact.event.step == step), None)


@_remembered
def admission(source: RunSource, step: int) -> Fact[StepAdmitted] | None:
    """What fixed a step's batch."""
    return next((fact for fact in source.of_run(StepAdmitted) if fact.event.step == step), None)


@_remembered
def validations(source: RunSource) -> list[Fact[ValidationOpened]]:
    """Every validation that began, in order of version and set."""
    opened = [fact for name in source.names("validation") for fact in source.every(name, ValidationOpened)]
    return sorted(opened, key=lambda fact: (fact.event.version, fact.event.dataset != "main", fact.event.dataset))


def validation_of(source: RunSource, scope: str) -> Fact[ValidationOpened] | None:
    """The validation of a scope as `v24-main`."""
    return source.first(f"validation/{source.run}/{scope}", ValidationOpened)


@_remembered
def generated_by(source: RunSource, scope: str) -> int | None:
    """The one version that generates the rollouts of a scope; None where there is no such step or validation."""
    if scope.isdigit():
        found = dispatch(source, int(scope))
        return None if found is None else found.event.version
    opened = validation_of(source, scope)
    return None if opened is None else opened.event.version


@_remembered
def tasks_of(source: RunSource, scope: str) -> list[str]:
    """Digest of each prompt's task in a scope, by index."""
    if scope.isdigit():
        step = steps(source).get(int(scope))
        return [] if step is None else [prompt.task for prompt in step.prompts]
    opened = validation_of(source, scope)
    return [] if opened is None else list(opened.event.tasks)


@_remembered
def scopes(source: RunSource) -> list[str]:
    """Every scope of the run: its steps, then its validations."""
    named = [validation_scope(fact.event.version, fact.event.dataset) for fact in validations(source)]
    return [str(step) for step in sorted(steps(source))] + named


@_remembered
def groups_with(source: RunSource, task: str) -> list[Ref]:
    """The groups that worked on a task, by its digest."""
    return _by_task(source).get(task, [])


@_remembered
def _by_task(source: RunSource) -> dict[str, list[Ref]]:
    found: dict[str, list[Ref]] = {}
    for scope in scopes(source):
        for group, task in zip(groups_of(source, scope), tasks_of(source, scope), strict=True):
            found.setdefault(task, []).append(group)
    return found


@_remembered
def groups_of(source: RunSource, scope: str) -> list[Ref]:
    """The groups of a scope."""
    return [Ref("group", (scope, str(prompt))) for prompt in range(len(tasks_of(source, scope)))]


def group_stream(source: RunSource, ref: Ref) -> str:
    """A group's stream."""
    return prompt_stream(source.run, ref.parts[0], int(ref.parts[1]))


def stream_of(source: RunSource, ref: Ref) -> str:
    """The stream of a rollout, or of the one that something is part of; an ancestor's where a fork took it over."""
    scope, prompt, sample = ref.parts[0], int(ref.parts[1]), int(ref.parts[2])
    fork = fork_of(source)
    for child in fork.event.reused if fork else ():
        run, *place = parse_prompt_stream(child.stream)
        if place == [scope, prompt]:
            return rollout_stream(run, scope, prompt, sample)
    return rollout_stream(source.run, scope, prompt, sample)


def rollout_of(stream: str) -> Ref:
    """The rollout of a stream."""
    name = parse_rollout_stream(stream)
    return Ref("rollout", (name.scope, str(name.prompt), str(name.sample)))


@_remembered
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


@_remembered
def taint(source: RunSource) -> Taint:
    """What of the run is tainted."""
    quarantine = source.stream(quarantine_stream(source.run))
    marks = standing_marks((fact.seq, fact.event) for fact in quarantine)
    return taint_of(marks, max(versions(source), default=-1), lambda rollout: _is_trained(source, rollout))


def version_taint(source: RunSource, number: int) -> str:
    """Why a version is tainted; empty for a clean one."""
    first = taint(source).first_version
    if first is None or number < first:
        return ""
    return "trained on a tainted rollout" if number == first else f"made from version {first}, which is tainted"


def scope_taint(source: RunSource, scope: str, below: str) -> str:
    """Why what was generated in a scope is tainted.

    Args:
        source: What was read of the run.
        scope: A step or a validation.
        below: Beginning of the names of the rollouts' streams that are looked at.
    """
    marked = sum(mark.rollout.startswith(below) for mark in taint(source).marks)
    if marked:
        return f"{marked} of its rollouts {'are' if marked > 1 else 'is'} marked"
    version = generated_by(source, scope)
    return f"generated by version {version}, which is tainted" if version and version_taint(source, version) else ""


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
