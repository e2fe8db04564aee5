"""All that is recorded of a step and decides its batch: its dispatch, its groups, their rollouts, its admission."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from stepwell.audit.dispatched import AuditedStep
from stepwell.events import (
    GroupClosed,
    GroupOpened,
    RolloutEnded,
    RolloutFailed,
    RolloutGraded,
    RowsRecorded,
    StepAdmitted,
    TurnRecorded,
)
from stepwell.events.base import Event, facts_digest
from stepwell.events.children import ChildHead
from stepwell.events.group_closed import Fate
from stepwell.rl.grouping import rollouts_of

E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class StreamRead:
    """A stream as it was read."""

    events: Sequence[Event]
    """Its events, in order."""
    head: str
    """Hash of the last one."""


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """One rollout of a group."""

    stream: str
    """Name of its stream."""
    ended: RolloutEnded | None
    """Its end, if it came to one of its own."""
    graded: RolloutGraded | None
    """Its score, if it has one."""
    failed: RolloutFailed | None
    """Its failure, if it has one."""
    rows: RowsRecorded | None
    """Its rows of tokens, if it has several."""
    turns: tuple[TurnRecorded, ...]
    """Those that count: of the epoch that ended."""
    child: ChildHead | None
    """Where its stream ends; None if it was never begun."""

    @classmethod
    def of(cls, stream: str, read: StreamRead | None) -> "RolloutRecord":
        """From its stream; None for one that does not exist."""
        events = () if read is None else read.events
        ended = _first(events, RolloutEnded)
        epoch = None if ended is None else ended.epoch
        turns = tuple(event for event in events if isinstance(event, TurnRecorded) and event.epoch == epoch)
        graded, failed = _first(events, RolloutGraded), _first(events, RolloutFailed)
        return cls(stream, ended, graded, failed, _first(events, RowsRecorded), turns, _child(stream, read))


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """One prompt of a step, and what became of it."""

    prompt: int
    """Its index in the step."""
    stream: str
    """Name of its stream."""
    opened: GroupOpened | None
    """Its beginning; None where its stream lacks it."""
    closed: GroupClosed | None
    """Its end; None while it has no fate."""
    child: ChildHead | None
    """Where its stream ends; None if there is none."""
    rollouts: tuple[RolloutRecord, ...]
    """By sample."""

    @property
    def is_trained(self) -> bool:
        """Whether it is recorded as part of its step's batch."""
        return self.closed is not None and self.closed.fate is Fate.TRAINED


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step as the ledger has it."""

    run: str
    """Name of the run."""
    dispatched: AuditedStep
    """Its prompts and the settings in force, replacements among them."""
    groups: tuple[GroupRecord, ...]
    """One a prompt, by index."""
    admitted: StepAdmitted | None
    """Its admission; None while its batch is not fixed."""
    batch: bytes | None = field(default=None, repr=False)
    """The batch manifest that its admission names, as it is stored; None where that is missing."""

    @property
    def step(self) -> int:
        """Its number, from 0."""
        return self.dispatched.event.step


def step_record(
    run: str,
    dispatched: AuditedStep,
    streams: Mapping[str, StreamRead],
    admitted: StepAdmitted | None,
    batch: bytes | None,
) -> StepRecord:
    """Puts a step together.

    Args:
        run: Name of the run.
        dispatched: The step, as `stepwell.audit.dispatched.steps_of` gives it.
        streams: Its prompts' and rollouts' streams, by name; those that do not exist are left out.
        admitted: Its admission.
        batch: The blob that the admission names.
    """
    groups = tuple(_group(index, prompt.stream, streams) for index, prompt in enumerate(dispatched.prompts))
    return StepRecord(run, dispatched, groups, admitted, batch)


def _group(prompt: int, stream: str, streams: Mapping[str, StreamRead]) -> GroupRecord:
    read = streams.get(stream)
    events = () if read is None else read.events
    opened = _first(events, GroupOpened)
    closed = _first(events, GroupClosed)
    names = rollouts_of(stream, opened.samples if opened else 0, closed)
    return GroupRecord(
        prompt=prompt,
        stream=stream,
        opened=opened,
        closed=closed,
        child=_child(stream, read),
        rollouts=tuple(RolloutRecord.of(name, streams.get(name)) for name in names),
    )


def _first(events: Sequence[Event], kind: type[E]) -> E | None:
    return next((event for event in events if isinstance(event, kind)), None)


def _child(stream: str, read: StreamRead | None) -> ChildHead | None:
    if read is None:
        return None
    return ChildHead(stream=stream, seq=len(read.events) - 1, head=read.head, facts=facts_digest(read.events))
