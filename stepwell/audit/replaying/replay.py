"""Replays a step: computes all that follows from its rollouts, and compares it with what was recorded, to the byte."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from stepwell.audit.recipe import AuditedRecipe
from stepwell.audit.replaying.batch import admission, batch_of, group_closed
from stepwell.audit.replaying.batch_differences import batch_differences
from stepwell.audit.replaying.difference import Difference
from stepwell.audit.replaying.step_record import GroupRecord, StepRecord
from stepwell.events import GroupClosed, StepAdmitted
from stepwell.events.children import ChildHead
from stepwell.events.group_closed import Fate
from stepwell.rl.admission import NotReady, step_admitted
from stepwell.rl.schedule import generation_version


@dataclass(frozen=True, slots=True)
class StepReplay:
    """What a replay of a step found."""

    step: int
    """Training step."""
    version: int
    """Version that generated it."""
    fates: Mapping[Fate, int]
    """Prompts by fate, as computed; empty where the step cannot be admitted."""
    rollouts: int
    """Rollouts of all its groups."""
    masked: int
    """Of its batch's rollouts, those without a part in the loss."""
    micro_batches: int
    """Micro-batches of its batch."""
    differences: tuple[Difference, ...]
    """In the order in which one follows from another; empty where everything is equal."""

    @property
    def is_equal(self) -> bool:
        """Whether everything computed is what was recorded."""
        return not self.differences


def replay(step: StepRecord, recipe: AuditedRecipe, rows: Iterable[Difference] = ()) -> StepReplay:
    """Replays an admitted step.

    Args:
        step: What is recorded of it.
        recipe: The run's.
        rows: Where the ends of its rollouts are not what their turns make them
            (`stepwell.audit.replaying.rows.row_differences`).

    Raises:
        ValueError: the step is not admitted.
    """
    if step.admitted is None:
        raise ValueError(f"step {step.step} is not admitted: there is no batch to compare")
    differences = [*_version(step, recipe), *rows]
    for group in step.groups:
        differences += _group(step.step, group)
    fates: Mapping[Fate, int] = {}
    masked = micro_batches = 0
    try:
        fates = admission(step, recipe).fates
        batch = batch_of(step, recipe)
    except (NotReady, ValueError) as error:
        differences.append(Difference(step.step, "StepAdmitted", "admission", "admitted", f"refused: {error}"))
    else:
        masked = sum(sample.mask is not None for sample in batch.samples)
        micro_batches = len(batch.micro_batches)
        if step.batch is not None:
            differences += batch_differences(step.batch, batch)
        children = [group.child for group in step.groups if group.child is not None]
        differences += _admitted(step.admitted, step_admitted(batch, children))
    return StepReplay(
        step=step.step,
        version=step.dispatched.event.version,
        fates=fates,
        rollouts=sum(len(group.rollouts) for group in step.groups),
        masked=masked,
        micro_batches=micro_batches,
        differences=tuple(differences),
    )


def _version(step: StepRecord, recipe: AuditedRecipe) -> Iterator[Difference]:
    found = step.dispatched.event.version
    wanted = generation_version(step.step, step.dispatched.staleness(recipe.run.max_staleness))
    if found != wanted:
        yield Difference(step.step, "StepDispatched", "version", str(found), str(wanted))


def _group(step: int, group: GroupRecord) -> Iterator[Difference]:
    """A group's end against its rollouts'; where it has none, the admission tells."""
    recorded = group.closed
    if recorded is None:
        return
    computed = group_closed(group)
    for name in ("fate", "cause"):
        found, wanted = getattr(recorded, name), getattr(computed, name)
        if found != wanted:
            yield Difference(step, "GroupClosed", name, str(found or "none"), str(wanted or "none"), group.prompt)
    yield from _scores(step, group, recorded, computed)
    yield from _children(step, group, recorded, computed)
    if recorded.rollout_facts != computed.rollout_facts:
        yield Difference(
            step, "GroupClosed", "rollout_facts", recorded.rollout_facts, computed.rollout_facts, group.prompt
        )


def _scores(step: int, group: GroupRecord, recorded: GroupClosed, computed: GroupClosed) -> Iterator[Difference]:
    if len(recorded.scores) != len(computed.scores):
        found, wanted = f"{len(recorded.scores)} of them", f"{len(computed.scores)}"
        yield Difference(step, "GroupClosed", "scores", found, wanted, group.prompt)
    for rollout, found, wanted in zip(group.rollouts, recorded.scores, computed.scores, strict=False):
        if found != wanted:
            scores = [str("none" if score is None else score) for score in (found, wanted)]
            yield Difference(step, "GroupClosed", "scores", scores[0], scores[1], group.prompt, rollout.stream)


def _children(step: int, group: GroupRecord, recorded: GroupClosed, computed: GroupClosed) -> Iterator[Difference]:
    """Streams that the group commits to, each as it is."""
    ours, theirs = ({child.stream: child for child in event.children} for event in (computed, recorded))
    for name in sorted(ours.keys() | theirs.keys()):
        found, wanted = theirs.get(name), ours.get(name)
        if found != wanted:
            yield Difference(step, "GroupClosed", "children", _head(found), _head(wanted), group.prompt, name)


def _head(child: ChildHead | None) -> str:
    return "none" if child is None else f"#{child.seq} {child.head}, facts {child.facts}"


def _admitted(recorded: StepAdmitted, computed: StepAdmitted) -> Iterator[Difference]:
    for name in StepAdmitted.model_fields:
        found, wanted = getattr(recorded, name), getattr(computed, name)
        if found != wanted:
            yield Difference(computed.step, "StepAdmitted", name, str(found), str(wanted))
