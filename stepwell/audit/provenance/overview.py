"""Where a run's newest score comes from: every version with the batch that made it, and one path in full."""

from dataclasses import dataclass

from stepwell.audit.provenance.graph import node_of
from stepwell.audit.provenance.named import resolve
from stepwell.audit.provenance.node import Node
from stepwell.audit.provenance.places import (
    admission,
    group_stream,
    groups_of,
    taint,
    validation_ref,
    validations,
    versions,
)
from stepwell.audit.provenance.reference import NoSuchThing, Ref
from stepwell.audit.provenance.source import RunSource
from stepwell.audit.provenance.tree import Explanation, explain
from stepwell.audit.taint import Taint
from stepwell.events import GroupClosed, StepTrained, ValidationClosed

VERSIONS = 50
"""Newest versions that are listed one by one: a page stays small however long the run."""


@dataclass(frozen=True)
class GroupGlance:
    """A group of a batch."""

    node: Node
    """What is known of it."""
    scores: tuple[float | None, ...]
    """Of each sample."""


@dataclass(frozen=True)
class VersionGlance:
    """A version, what it was trained on, and how it scored."""

    number: int
    """Which."""
    node: Node
    """What is known of it."""
    batch: Node | None
    """What it was trained on; None for version 0."""
    groups: tuple[GroupGlance, ...]
    """Of that batch's step."""
    validations: tuple[Node, ...]
    """Of it that are over."""


@dataclass(frozen=True)
class Overview:
    """A run's newest score, and all that led to it."""

    explanation: Explanation
    """Of the last validation on the set `main`; before the first, of the newest version."""
    versions: tuple[VersionGlance, ...]
    """The newest `VERSIONS` up to it, in order."""
    omitted: int
    """Versions before those."""
    taint: Taint
    """What is not to be trusted."""


def overview(source: RunSource) -> Overview | None:
    """The overview of a run; None of one without a version."""
    made = sorted(versions(source))
    if not made:
        return None
    try:
        root = resolve(source, Ref("last", ("pass@k",)))
        newest = int(root.parts[0])
    except NoSuchThing:
        newest = made[-1]
        root = Ref("version", (str(newest),))
    upto = [number for number in made if number <= newest]
    listed = upto[-VERSIONS:]
    return Overview(
        explanation=explain(source, root),
        versions=tuple(_glance(source, number) for number in listed),
        omitted=len(upto) - len(listed),
        taint=taint(source),
    )


def _glance(source: RunSource, number: int) -> VersionGlance:
    fact = versions(source)[number]
    step = fact.event.step if isinstance(fact.event, StepTrained) else None
    batch = None if step is None or admission(source, step) is None else Ref("batch", (str(step),))
    over = [
        validation_ref(opened)
        for opened in validations(source)
        if opened.event.version == number and source.first(opened.stream, ValidationClosed)
    ]
    return VersionGlance(
        number=number,
        node=node_of(source, Ref("version", (str(number),))),
        batch=None if batch is None else node_of(source, batch),
        groups=() if step is None else tuple(_group(source, group) for group in groups_of(source, str(step))),
        validations=tuple(node_of(source, ref) for ref in over),
    )


def _group(source: RunSource, ref: Ref) -> GroupGlance:
    closed = source.first(group_stream(source, ref), GroupClosed)
    return GroupGlance(node_of(source, ref), tuple(closed.event.scores) if closed else ())
