"""Validations and their scores."""

from stepwell.audit.provenance.node import Edge, Figure, Node
from stepwell.audit.provenance.places import (
    groups_of,
    refuse,
    scope_taint,
    validation_name,
    validation_ref,
    validations,
)
from stepwell.audit.provenance.reference import Ref
from stepwell.audit.provenance.run_life import END, deciders, ends
from stepwell.audit.provenance.source import RunSource
from stepwell.events import GroupClosed, ValidationClosed, ValidationOpened, ValidationRecorded
from stepwell.events.streams import prompt_stream, validation_scope
from stepwell.nearest_names import did_you_mean
from stepwell.rl.passk import pass_rates


def validation(source: RunSource, ref: Ref) -> Node:
    """A validation with its scores."""
    stream = validation_name(source, ref)
    opened, closed = source.first(stream, ValidationOpened), source.first(stream, ValidationClosed)
    if opened is None:
        known = [str(validation_ref(fact)) for fact in validations(source)]
        meant = did_you_mean(str(ref), known)
        raise refuse(ref, f"{meant} there are {', '.join(known)}".strip() if known else "it has no validations yet")
    if closed is None:
        return Node(ref, "under way", (opened.mark,))
    said, scope = closed.event, validation_scope(int(ref.parts[0]), ref.parts[1])
    recorded = [
        fact.mark
        for fact in source.of_run(ValidationRecorded)
        if (str(fact.event.version), fact.event.dataset) == ref.parts
    ]
    solved = sum(passed > 0 for passed in said.passed)
    rates = pass_rates(said.passed, said.graded)
    whole = 0.0 if rates is None else rates.pass_all.value
    scores = f"pass@{said.k} {said.pass_k:.3f}, pass@1 {said.pass_1:.3f}, pass^{said.k} {whole:.3f}"
    title = f"{scores}, {solved} of {len(said.passed)} tasks solved"
    figures: dict[str, Figure] = {
        "pass_1": said.pass_1,
        "pass_k": said.pass_k,
        "pass_all": whole,
        "k": said.k,
        "solved": solved,
        "tasks": len(said.passed),
    }
    return Node(
        ref, title, (closed.mark, *recorded), figures, scope_taint(source, scope, f"rollout/{source.run}/{scope}/")
    )


def validation_causes(source: RunSource, ref: Ref) -> list[Edge]:
    """The version, and the groups that it counts."""
    opened = source.first(validation_name(source, ref), ValidationOpened)
    if opened is None:
        return []
    found = [Edge(Ref("version", ref.parts[:1]), ref, "the validation is pinned to it", opened.mark)]
    scope = validation_scope(opened.event.version, opened.event.dataset)
    for group in groups_of(source, scope):
        closed = source.first(prompt_stream(source.run, scope, int(group.parts[1])), GroupClosed)
        if closed is not None:
            found.append(Edge(group, ref, "its samples count in it", closed.mark))
    return found


def validation_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """The end of the run, where it reached the target."""
    found = list[Edge]()
    for fact in ends(source):
        found += [Edge(ref, END, why, fact.mark) for cause, why in deciders(source, fact) if cause == ref]
    return found
