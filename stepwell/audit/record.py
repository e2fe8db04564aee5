"""All that an audit needs of a run, in a form that a big run fits into: turns are reduced to a few numbers each.

Who reads the ledger hands each stream to a `RecordBuilder` once; the rules see the `RunRecord` that comes out.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from stepwell.audit.blob_names import blobs_of
from stepwell.audit.dispatched import AuditedStep, steps_of
from stepwell.audit.recipe import AuditedRecipe
from stepwell.events import (
    GroupClosed,
    RolloutEnded,
    RolloutFailed,
    RolloutGraded,
    RunCreated,
    RunFinished,
    TurnRecorded,
)
from stepwell.events.base import Event, facts_digest
from stepwell.events.children import ChildHead
from stepwell.events.streams import operator_stream, run_stream, weights_stream
from stepwell.tasks.manifest import TaskManifest

E = TypeVar("E", bound=Event)


class Placed(NamedTuple):
    """An event and where it stands."""

    seq: int
    """Its place in its stream."""
    event: Event
    """What happened."""


class TurnMark(NamedTuple):
    """What the rules need of a turn."""

    seq: int
    """Its place in the rollout's stream."""
    epoch: int
    """How often the rollout had been started over."""
    turn: int
    """Its number in the epoch."""
    version: int
    """Weight version of its tokens."""
    prompt_tokens: int
    """How many were before them."""
    generated_tokens: int
    """How many."""
    engine: str
    """Who generated them."""


class Naming(NamedTuple):
    """An event that names a blob."""

    stream: str
    """Its stream."""
    seq: int
    """Its place there."""


@dataclass(frozen=True, slots=True)
class ChainFault:
    """Where a stream stops to verify."""

    stream: str
    """Its name."""
    seq: int
    """First event that does not hold."""
    why: str
    """In words."""


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

    def first(self, kind: type[E]) -> tuple[int, E] | None:
        """Place and body of the first event of a type."""
        return next(((placed.seq, placed.event) for placed in self.events if isinstance(placed.event, kind)), None)

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

    @property
    def run_events(self) -> StreamRecord:
        """The run's own stream; empty where its first event does not verify."""
        return self._stream(run_stream(self.run))

    @property
    def operators(self) -> StreamRecord:
        """What operators did, and what waited for them; empty where nobody did anything."""
        return self._stream(operator_stream(self.run))

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
        self._faults: list[ChainFault] = []
        self._events = 0
        self._named: dict[str, Naming] = {}

    def add(self, name: str, events: Sequence[Event], hashes: Sequence[str], fault: ChainFault | None = None) -> None:
        """Takes in a stream.

        Args:
            name: Its name.
            events: Its events from 0 on, those before the first that does not verify.
            hashes: The hash of each.
            fault: Where it stops to verify, if it does.
        """
        if fault is not None:
            self._faults.append(fault)
        if not events:
            return
        self._events += len(events)
        for seq, event in enumerate(events):
            for digest in blobs_of(event):
                self._named.setdefault(digest, Naming(name, seq))
        is_rollout = name.startswith("rollout/")
        self._streams[name] = StreamRecord(
            name=name,
            events=tuple(Placed(seq, event) for seq, event in enumerate(events) if not isinstance(event, TurnRecorded)),
            turns=tuple(_mark(seq, event) for seq, event in enumerate(events) if isinstance(event, TurnRecorded)),
            hashes=(hashes[-1],) if is_rollout else tuple(hashes),
            child=ChildHead(stream=name, seq=len(events) - 1, head=hashes[-1], facts=facts_digest(events)),
        )

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
        self, *, named_blobs: Mapping[str, Naming], blob_faults: Mapping[str, str], documents: Mapping[str, bytes]
    ) -> RunRecord:
        """The record.

        Args:
            named_blobs: `named_blobs()`, and the files of the folders that they list.
            blob_faults: What is wrong with a blob, by its digest.
            documents: Bytes of the batch manifests and of the lists of children, by digest.
        """
        return RunRecord(
            run=self._run,
            streams=dict(self._streams),
            faults=tuple(self._faults),
            events=self._events,
            named_blobs=named_blobs,
            blob_faults=blob_faults,
            documents=documents,
        )


def outcome_of(rollout: StreamRecord) -> tuple[RolloutEnded | None, RolloutGraded | None, RolloutFailed | None]:
    """How a rollout ended: its end, its score, its failure."""
    ended, graded, failed = rollout.first(RolloutEnded), rollout.first(RolloutGraded), rollout.first(RolloutFailed)
    return ended and ended[1], graded and graded[1], failed and failed[1]


def _mark(seq: int, turn: TurnRecorded) -> TurnMark:
    return TurnMark(
        seq, turn.epoch, turn.turn, turn.version, turn.prompt_tokens, turn.generated_tokens, sys.intern(turn.engine)
    )
