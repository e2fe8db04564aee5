"""Prompt groups."""

from stepwell.audit.provenance.node import Edge, Figure, Node
from stepwell.audit.provenance.places import (
    admission,
    dispatch,
    generated_by,
    group_stream,
    refuse,
    rollouts_of,
    scope_taint,
    scopes,
    steps,
    tasks_of,
    validation_of,
    validation_ref,
)
from stepwell.audit.provenance.reference import Ref
from stepwell.audit.provenance.run_life import skips
from stepwell.audit.provenance.source import RunSource
from stepwell.events import GroupClosed, GroupOpened
from stepwell.events.group_closed import Fate
from stepwell.nearest_names import did_you_mean

_REPLACED = "it was put in place of this one"


def group(source: RunSource, ref: Ref) -> Node:
    """A prompt group."""
    check_group(source, ref)
    opened = source.first(group_stream(source, ref), GroupOpened)
    closed = source.first(group_stream(source, ref), GroupClosed)
    if opened is None:
        return Node(ref, "not begun", ())
    figures: dict[str, Figure] = {
        "task": opened.event.task,
        "task_id": opened.event.task_id,
        "version": opened.event.version,
    }
    title = f"task {opened.event.task_id}"
    if closed is None:
        return Node(ref, f"{title}: under way", (opened.mark,), figures)
    below = f"{group_stream(source, ref).replace('prompt/', 'rollout/', 1)}/"
    scores = [score for score in closed.event.scores if score is not None]
    figures |= {"fate": closed.event.fate.value, "solved": sum(score > 0 for score in scores), "graded": len(scores)}
    cause = f", {closed.event.cause}" if closed.event.cause else ""
    title += f": {closed.event.fate.value}{cause}, {figures['solved']} of {len(closed.event.scores)} solved"
    return Node(ref, title, (closed.mark, opened.mark), figures, scope_taint(source, ref.parts[0], below))


def group_causes(source: RunSource, ref: Ref) -> list[Edge]:
    """Its rollouts, its task, who dispatched, generated, replaced or skipped it."""
    closed = source.first(group_stream(source, ref), GroupClosed)
    mark = closed.mark if closed else None
    found = [Edge(rollout, ref, "one of its samples", mark) for rollout in rollouts_of(source, ref)]
    scope, prompt = ref.parts[0], int(ref.parts[1])
    tasks, version = tasks_of(source, scope), generated_by(source, scope)
    opened = source.first(group_stream(source, ref), GroupOpened)
    if prompt < len(tasks):
        found.append(Edge(Ref("task", (tasks[prompt],)), ref, "what was to be done", opened.mark if opened else None))
    if version is not None:
        found.append(Edge(Ref("version", (str(version),)), ref, "generated it", None, is_chain=True))
    step = steps(source).get(int(scope)) if scope.isdigit() else None
    if step is not None:
        fact = dispatch(source, int(scope))
        found.append(Edge(Ref("step", (scope,)), ref, "its prompt is one of the step", fact.mark if fact else None))
    found += [Edge(other, ref, _REPLACED, None) for other in replaced_by(source, ref, is_cause=False)]
    return found + skips(source, ref)


def group_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """The batch, or the validation, that it is part of; what replaced it."""
    closed = source.first(group_stream(source, ref), GroupClosed)
    found = [Edge(ref, other, _REPLACED, None) for other in replaced_by(source, ref, is_cause=True)]
    if closed is None:
        return found
    scope = ref.parts[0]
    admitted = admission(source, int(scope)) if scope.isdigit() else None
    if closed.event.fate is Fate.TRAINED and admitted is not None:
        found.insert(0, Edge(ref, Ref("batch", (scope,)), "its fate is trained", admitted.mark))
    opened = None if scope.isdigit() else validation_of(source, scope)
    if opened is not None:
        found.insert(0, Edge(ref, validation_ref(opened), "its samples count in it", closed.mark))
    return found


def replaced_by(source: RunSource, ref: Ref, *, is_cause: bool) -> list[Ref]:
    """Groups that were put in place of one, or with `is_cause` false those in whose place it was put."""
    scope, prompt = ref.parts[0], int(ref.parts[1])
    step = steps(source).get(int(scope)) if scope.isdigit() else None
    pairs = [(event.replaces, event.prompt) for _, event in step.replacements] if step else []
    others = [new if is_cause else old for old, new in pairs if (old if is_cause else new) == prompt]
    return [Ref("group", (scope, str(other))) for other in others]


def check_group(source: RunSource, ref: Ref) -> None:
    """Refuses a group that the run has not.

    Raises:
        NoSuchThing: it has no such step or validation, or fewer prompts.
    """
    scope, prompts = ref.parts[0], len(tasks_of(source, ref.parts[0]))
    if prompts == 0:
        known = scopes(source)
        meant = did_you_mean(scope, known)
        there = f"steps and validations are {', '.join(known[:3])} … {known[-1]}" if known else "it has no steps yet"
        raise refuse(ref, f"{meant} {there}".strip())
    if int(ref.parts[1]) >= prompts:
        raise refuse(ref, f"{scope} has the prompts 0 to {prompts - 1}")
