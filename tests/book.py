"""Streams and blobs that a test writes a run to, in memory or in the real stores, and lies that can be told in it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from db.blobs import blob_digest
from db.ledger import Ledger
from db.owners import OWNERS
from stepwell.audit.blob_names import documents_of
from stepwell.audit.record import RecordBuilder, RunRecord
from stepwell.audit.verification import Verification
from stepwell.events import OperatorActed
from stepwell.events.base import Event, facts_digest
from stepwell.events.children import ChildHead
from stepwell.events.envelope import GENESIS, seal

Lie = Callable[[str, Event], Event | None]
"""From a stream's name and an event to the event that is appended in its place; None drops it."""


NOON = "2026-01-31T12:00:00.000000Z"


def truth(_: str, event: Event) -> Event | None:
    """Changes nothing."""
    return event


@dataclass(frozen=True)
class Told:
    """A change of the events that fit, for readable tables of tests."""

    kind: type[Event]
    changes: dict[str, Any]
    where: str = ""
    """End of the stream's name."""
    step: int | None = None
    """Training step of the event, for those that have one."""
    key: str = ""
    """Beginning of the event's key."""

    def __call__(self, stream: str, event: Event) -> Event | None:
        fits = isinstance(event, self.kind) and stream.endswith(self.where) and event.key().startswith(self.key)
        if self.step is not None:
            fits = fits and getattr(event, "step", None) == self.step
        return event.model_copy(update=self.changes) if fits else event


def dropped(kind: type[Event], where: str = "", **fields: Any) -> Lie:
    """Loses every event of a type, in streams that end so, with these fields."""

    def lie(stream: str, event: Event) -> Event | None:
        fits = isinstance(event, kind) and stream.endswith(where)
        return None if fits and all(getattr(event, name) == value for name, value in fields.items()) else event

    return lie


def acts(fits: Callable[[OperatorActed], bool], **changes: Any) -> Lie:
    """Changes the acts of operators that fit; without changes they are lost."""

    def lie(_: str, event: Event) -> Event | None:
        if not isinstance(event, OperatorActed) or not fits(event):
            return event
        return event.model_copy(update=changes) if changes else None

    return lie


def both(first: Lie, second: Lie) -> Lie:
    """Tells two lies."""

    def lie(stream: str, event: Event) -> Event | None:
        told = first(stream, event)
        return None if told is None else second(stream, told)

    return lie


def failing(verification: Verification) -> dict[str, str]:
    """First finding of each rule that fails."""
    return {result.rule: str(result.findings[0]) for result in verification.results if result.findings}


class Book(ABC):
    """Streams and blobs that a run is written to."""

    def __init__(self, lie: Lie = truth) -> None:
        self._lie = lie
        self.run = ""
        self.events: dict[str, list[Event]] = {}
        self.hashes: dict[str, list[str]] = {}

    async def append(self, stream: str, *events: Event) -> None:
        """Appends what the lie makes of the events."""
        told = [changed for event in events if (changed := self._lie(stream, event)) is not None]
        for event in told:
            at = len(self.events.setdefault(stream, []))
            self.hashes.setdefault(stream, []).append(await self._store(stream, at, event))
            self.events[stream].append(event)

    def head(self, stream: str) -> ChildHead:
        """Where a stream ends."""
        events = self.events[stream]
        return ChildHead(stream=stream, seq=len(events) - 1, head=self.hashes[stream][-1], facts=facts_digest(events))

    def first(self, stream: str, kind: type[Event]) -> Any:
        """The first event of a type in a stream, if there is one."""
        return next((event for event in self.events.get(stream, []) if isinstance(event, kind)), None)

    @abstractmethod
    async def put(self, data: bytes) -> str:
        """Stores a blob."""

    @abstractmethod
    async def _store(self, stream: str, seq: int, event: Event) -> str:
        """Appends an event; returns its hash."""


@dataclass
class MemoryBook(Book):
    """In memory, for the rules alone."""

    lie: Lie = truth
    blobs: dict[str, bytes] = field(default_factory=dict)
    exact: dict[str, list[bytes]] = field(default_factory=dict)
    """Of each stream, the stored bytes of its events."""
    clock: Callable[[str, Event], str] = lambda _, __: NOON
    """The database's time of an event of a stream."""
    times: dict[str, list[str]] = field(default_factory=dict)
    """The time of each event."""

    def __post_init__(self) -> None:
        super().__init__(self.lie)

    async def put(self, data: bytes) -> str:
        self.blobs[blob_digest(data)] = data
        return blob_digest(data)

    async def _store(self, stream: str, seq: int, event: Event) -> str:
        sealed = seal(
            stream=stream,
            seq=seq,
            key=event.key(),
            type=event.type,
            schema=event.SCHEMA,
            actor=actor_of(stream),
            body=event.body(),
            prev_hash=self.hashes[stream][-1] if seq else GENESIS,
            time=self.clock(stream, event),
        )
        self.times.setdefault(stream, []).append(sealed.time)
        self.exact.setdefault(stream, []).append(sealed.exact_bytes())
        return sealed.hash

    def record(self, run: str) -> RunRecord:
        """What an auditor reads."""
        builder = RecordBuilder(run)
        for stream, events in self.events.items():
            builder.add(stream, events, self.hashes[stream], times=self.times[stream])
        wanted = {digest for events in self.events.values() for event in events for digest in documents_of(event)}
        named = builder.named_blobs()
        return builder.build(
            named_blobs=named,
            blob_faults={digest: f"blob {digest} is not stored" for digest in named if digest not in self.blobs},
            documents={digest: self.blobs[digest] for digest in wanted if digest in self.blobs},
        )


class LedgerBook(Book):
    """The real ledger and blob store."""

    def __init__(self, ledger: Ledger, put: Callable[[bytes], Any], lie: Lie = truth) -> None:
        super().__init__(lie)
        self._ledger = ledger
        self._put = put

    async def put(self, data: bytes) -> str:
        return (await self._put(data)).digest

    async def _store(self, stream: str, seq: int, event: Event) -> str:
        return (await self._ledger.append(stream, [event], expected_seq=seq, actor=actor_of(stream))).hash


def actor_of(stream: str) -> str:
    """Who appends to a stream."""
    return f"{OWNERS[stream.partition('/')[0]]}:test/1"
