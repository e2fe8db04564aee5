"""All that an audit needs of a run, in a form that a big run fits into: turns are reduced to a few numbers each.

Who reads the ledger hands each stream to a `RecordBuilder` once; the rules see the `RunRecord` that comes out.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from pydantic import ValidationError

from stepwell.audit.blob_names import blobs_of
from stepwell.audit.dispatched import AuditedStep, steps_of
from stepwell.audit.places import ChainFault, Naming, Placed, TurnMark
from stepwell.audit.projected import NOT_COMPARED, Projected
from stepwell.audit.recipe import AuditedRecipe
from stepwell.events import (
    GroupClosed,
    PayloadDeleted,
    RolloutEnded,
    RolloutFailed,
    RolloutGraded,
    RunCreated,
    RunFinished,
    RunForked,
    StepTrained,
    TurnRecorded,
    VersionCreated,
)
from stepwell.events.base import Event, facts_digest
from stepwell.events.children import ChildHead
from stepwell.events.streams import (
    deleted_stream,
    operator_stream,
    parse_prompt_stream,
    run_stream,
    seal_stream,
    weights_stream,
)
from stepwell.tasks.manifest import TaskManifest

E = TypeVar("E", bound=Event)

_TIMED = ("run/", "weights/", "validation/")
"""Kinds of streams whose times a rule reads."""


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A stream, as far as it verifies."""

    name: str
    """Its name."""
    events: tuple[Placed, ...]
    """Its events; of a rollout all but its turns."""
    turns: tuple[TurnMark, ...]
    """A rollout's turns."""
    hashes: tuple[str, ...]
    """Hash of each event, by place; of a rollout only the last, at the end of an otherwise empty tuple."""
    child: ChildHead
    """Where it ends, as its parent must say it."""
    times: tuple[str, ...] = ()
    """Database's time of each event, by place; of the run, its weights and its validations only."""

    def first(self, kind: type[E]) -> tuple[int, E] | None:
        """Place and body of the first event of a type."""
        for seq, event in self.events:  # a plain loop: rules ask for this more often than there are events
            if isinstance(event, kind):
                return seq, event
        return None

    def every(self, kind: type[E]) -> list[tuple[int, E]]:
        """Place and body of each event of a type, in order."""
        return [(placed.seq, placed.event) for placed in self.events if isinstance(placed.event, kind)]


@dataclass(frozen=True)
class RunRecord:
    """A run as its ledger has it."""

    run: str
    """Its name."""
    streams: Mapping[str, StreamRecord]
    """Every stream of the run and every verdict that it names, by name."""
    faults: tuple[ChainFault, ...]
    """Streams that do not verify."""
    events: int
    """Events that verify."""
    named_blobs: Mapping[str, Naming]
    """Each blob that an event names, with the first that does."""
    blob_faults: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is wrong with a blob, by its digest."""
    documents: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Bytes of the batch manifests and of the lists of children, by digest, those that are present."""
    missing_blobs: frozenset[str] = frozenset()
    """Of the faults, blobs that are not stored at all."""
    projected: Projected = NOT_COMPARED
    """Tables for reading."""
    ancestors: Mapping[str, StreamRecord] = field(default_factory=dict[str, StreamRecord])
    """Streams of other runs that a fork goes on from, by name: `run/…`, `weights/…` and `engine/…` of its ancestors,
    and the groups that it took over, with their rollouts."""

    @cached_property
    def fork(self) -> RunForked | None:
        """What the run goes on from, if it is a fork."""
        return self.fork_of(self.run)

    def fork_of(self, run: str) -> RunForked | None:
        """What the run, or an ancestor of it, goes on from."""
        stream = self.find(run_stream(run))
        found = stream.first(RunForked) if stream else None
        return found[1] if found else None

    @property
    def first_step(self) -> int:
        """First step that is the run's own, and number of the version that it begins with."""
        return 0 if self.fork is None else self.fork.step

    def find(self, stream: str) -> StreamRecord | None:
        """A stream of the run, or one that it goes on from."""
        return self.streams.get(stream) or self.ancestors.get(stream)

    def rollouts_below(self, group: str) -> str:
        """Beginning of the names of a group's rollouts: those that a fork took over are its ancestor's."""
        place = parse_prompt_stream(group)[1:]
        for child in self.fork.reused if self.fork else ():
            if parse_prompt_stream(child.stream)[1:] == place:
                return f"rollout/{child.stream.removeprefix('prompt/')}/"
        return f"rollout/{group.removeprefix('prompt/')}/"

    def exported(self, run: str, version: int) -> str | None:
        """Digest of the exported weights of a version that a run made, or goes on from; None if there is none."""
        weights, fork = self.find(weights_stream(run)), self.fork_of(run)
        for _, event in weights.events if weights else ():
            if isinstance(event, VersionCreated | StepTrained) and event.version == version:
                return event.digests.exported
        return self.exported(fork.parent, version) if fork is not None and version <= fork.step else None

    @property
    def run_events(self) -> StreamRecord:
        """The run's own stream; empty where its first event does not verify."""
        return self._stream(run_stream(self.run))

    @property
    def operators(self) -> StreamRecord:
        """What operators did, and what waited for them; empty where nobody did anything."""
        return self._stream(operator_stream(self.run))

    @property
    def seals(self) -> StreamRecord:
        """The run's key and signed heads; empty for a run that is not signed."""
        return self._stream(seal_stream(self.run))

    @property
    def weights(self) -> StreamRecord | None:
        """The stream of weight versions; None before version 0."""
        return self.streams.get(weights_stream(self.run))

    @property
    def created(self) -> RunCreated | None:
        """The run's first event; None where it does not verify."""
        found = self.run_events.first(RunCreated)
        return found[1] if found else None

    @property
    def finished(self) -> RunFinished | None:
        """The run's last event, if it ended."""
        found = self.run_events.first(RunFinished)
        return found[1] if found else None

    @cached_property
    def recipe(self) -> AuditedRecipe | None:
        """What the rules read of the recipe; None where it cannot be read: the rule `settings` says why."""
        try:
            return None if self.created is None else AuditedRecipe.model_validate(self.created.recipe)
        except ValidationError:
            return None

    @cached_property
    def manifest(self) -> TaskManifest | None:
        """Tasks of the run; None where their list is missing or no such list: the rules `blobs` and `curriculum` say
        so."""
        blob = self.documents.get(self.created.task_set) if self.created else None
        try:
            return None if blob is None else TaskManifest.model_validate_json(blob)
        except ValidationError:
            return None

    @cached_property
    def steps(self) -> Mapping[int, AuditedStep]:
        """Dispatched steps with their prompts, by number."""
        return steps_of(self.run, self.run_events.events)

    def deletion(self, digest: str) -> PayloadDeleted | None:
        """That a blob's bytes were deleted; None if they were not."""
        stream = self.streams.get(deleted_stream(digest))
        found = stream.first(PayloadDeleted) if stream else None
        return found[1] if found and found[1].digest == digest else None

    def closing(self, prompt: str) -> GroupClosed | None:
        """How a prompt's group ended, by its stream; None while it has not."""
        group = self.streams.get(prompt)
        found = group.first(GroupClosed) if group else None
        return found[1] if found else None

    def _stream(self, name: str) -> StreamRecord:
        nothing = ChildHead(stream=name, seq=-1, head="", facts="")
        return self.streams.get(name) or StreamRecord(name, (), (), (), nothing)

    def of_kind(self, kind: str) -> Iterable[StreamRecord]:
        """Streams whose name begins with `<kind>/`, in order of their names."""
        return (self.streams[name] for name in sorted(self.streams) if name.startswith(f"{kind}/"))


class RecordBuilder:
    """Takes streams in, one by one, and gives the record."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._streams: dict[str, StreamRecord] = {}
        self._ancestors: dict[str, StreamRecord] = {}
        self._faults: list[ChainFault] = []
        self._events = 0
        self._named: dict[str, Naming] = {}

    def add(
        self,
        name: str,
        events: Sequence[Event],
        hashes: Sequence[str],
        fault: ChainFault | None = None,
        bodies: Sequence[Mapping[str, Any]] = (),
        times: Sequence[str] = (),
    ) -> None:
        """Takes in a stream.

        Args:
            name: Its name.
            events: Its events from 0 on, those before the first that does not verify.
            hashes: The hash of each.
            fault: Where it stops to verify, if it does.
            bodies: As for `facts_digest`.
            times: The time of each.
        """
        if fault is not None:
            self._faults.append(fault)
        if not events:
            return
        self._events += len(events)
        self._name_blobs(name, events)
        self._streams[name] = _stream_record(name, events, hashes, bodies, times)

    def add_ancestor(
        self,
        name: str,
        events: Sequence[Event],
        hashes: Sequence[str],
        fault: ChainFault | None = None,
        bodies: Sequence[Mapping[str, Any]] = (),
        times: Sequence[str] = (),
    ) -> None:
        """Takes in a stream of another run that this one goes on from; of its blobs those of rollouts count as this
        run's. Arguments as of `add`."""
        if fault is not None:
            self._faults.append(fault)
        if not events:
            return
        self._events += len(events)
        if name.startswith("rollout/"):
            self._name_blobs(name, events)
        self._ancestors[name] = _stream_record(name, events, hashes, bodies, times)

    def _name_blobs(self, name: str, events: Sequence[Event]) -> None:
        for seq, event in enumerate(events):
            for digest in blobs_of(event):
                self._named.setdefault(digest, Naming(name, seq))

    def fork_of(self, run: str) -> RunForked | None:
        """What a run that was taken in goes on from."""
        stream = self._streams.get(run_stream(run)) or self._ancestors.get(run_stream(run))
        found = stream.first(RunForked) if stream else None
        return found[1] if found else None

    def children_of(self, groups: Iterable[str]) -> list[str]:
        """Rollouts of groups that were taken in, by the groups' own word."""
        streams = (self._ancestors.get(group) for group in groups)
        closings = (stream.first(GroupClosed) for stream in streams if stream is not None)
        return [child.stream for closing in closings if closing is not None for child in closing[1].children]

    def has(self, name: str) -> bool:
        """Whether a stream was taken in, or found not to verify from its first event on."""
        return name in self._streams or any(fault.stream == name for fault in self._faults)

    def verdict_keys(self) -> set[str]:
        """Verdicts that the rollouts taken in so far name."""
        return {
            placed.event.verdict_key
            for stream in self._streams.values()
            for placed in stream.events
            if isinstance(placed.event, RolloutGraded)
        }

    def named_blobs(self) -> dict[str, Naming]:
        """Blobs that the streams taken in so far name."""
        return dict(self._named)

    def build(
        self,
        *,
        named_blobs: Mapping[str, Naming],
        blob_faults: Mapping[str, str],
        documents: Mapping[str, bytes],
        missing_blobs: Iterable[str] = (),
        projected: Projected = NOT_COMPARED,
    ) -> RunRecord:
        """The record.

        Args:
            named_blobs: `named_blobs()`, and the files of the folders that they list.
            blob_faults: What is wrong with a blob, by its digest.
            documents: Bytes of the batch manifests and of the lists of children, by digest.
            missing_blobs: Of `blob_faults`, those that are not stored at all.
            projected: The tables for reading.
        """
        return RunRecord(
            run=self._run,
            streams=dict(self._streams),
            faults=tuple(self._faults),
            events=self._events,
            named_blobs=named_blobs,
            blob_faults=blob_faults,
            documents=documents,
            ancestors=dict(self._ancestors),
            missing_blobs=frozenset(missing_blobs),
            projected=projected,
        )


def _stream_record(
    name: str,
    events: Sequence[Event],
    hashes: Sequence[str],
    bodies: Sequence[Mapping[str, Any]],
    times: Sequence[str],
) -> StreamRecord:
    return StreamRecord(
        name=name,
        events=tuple(Placed(seq, event) for seq, event in enumerate(events) if not isinstance(event, TurnRecorded)),
        turns=tuple(_mark(seq, event) for seq, event in enumerate(events) if isinstance(event, TurnRecorded)),
        hashes=(hashes[-1],) if name.startswith("rollout/") else tuple(hashes),
        child=ChildHead(stream=name, seq=len(events) - 1, head=hashes[-1], facts=facts_digest(events, bodies)),
        times=tuple(times) if name.startswith(_TIMED) else (),
    )


def outcome_of(rollout: StreamRecord) -> tuple[RolloutEnded | None, RolloutGraded | None, RolloutFailed | None]:
    """How a rollout ended: its end, its score, its failure."""
    ended, graded, failed = rollout.first(RolloutEnded), rollout.first(RolloutGraded), rollout.first(RolloutFailed)
    return ended and ended[1], graded and graded[1], failed and failed[1]


def _mark(seq: int, turn: TurnRecorded) -> TurnMark:
    return TurnMark(
        seq, turn.epoch, turn.turn, turn.version, turn.prompt_tokens, turn.generated_tokens, sys.intern(turn.engine)
    )
