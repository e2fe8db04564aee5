"""The part of a run's ledger that has been read so far, and what a question about it still needs.

An explanation touches a small part of a big run. So whoever asks runs a pure function over a `RunSource`; where it
looks for what was not read yet, that is noted, and whoever reads fetches it and asks again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, cast

from pydantic import ValidationError

from stepwell.audit.blob_names import blobs_of
from stepwell.audit.provenance.node import EventMark
from stepwell.audit.provenance.reference import NoSuchThing
from stepwell.events import RolloutEnded, RolloutGraded
from stepwell.events.base import Event
from stepwell.events.streams import run_stream
from stepwell.rl.batching import BatchManifest, ManifestSample

E = TypeVar("E", bound=Event)
T = TypeVar("T")


class Fact(NamedTuple, Generic[E]):
    """An event as it stands in its stream."""

    stream: str
    """Its stream."""
    seq: int
    """Its place there."""
    hash: str
    """Its hash."""
    event: E
    """What happened."""

    @property
    def mark(self) -> EventMark:
        """Where to check it."""
        return EventMark(self.stream, self.seq, self.hash)


class Mention(NamedTuple):
    """An event that names something."""

    stream: str
    """Its stream."""
    seq: int
    """Its place there."""


@dataclass
class Needs:
    """What was looked for and not read yet."""

    streams: set[str] = field(default_factory=set[str])
    """Names of streams."""
    blobs: set[str] = field(default_factory=set[str])
    """Digests of blobs."""
    mentions: set[str] = field(default_factory=set[str])
    """Words of which all events of the run that name them are looked for."""

    def __bool__(self) -> bool:
        return bool(self.streams or self.blobs or self.mentions)


class RunSource:
    """What was read of a run.

    Args:
        run: Its name. Its streams `run`, `weights`, `operator`, `quarantine`, and all of its engines and validations
            are to be taken before anything is asked; the others as they are needed.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.needs = Needs()
        self._streams: dict[str, tuple[Fact[Event], ...]] = {}
        self._blobs: dict[str, bytes | None] = {}
        self._mentions: dict[str, tuple[Mention, ...]] = {}
        self._batches: dict[str, BatchManifest | None] = {}
        self._samples: dict[str, Mapping[str, ManifestSample]] = {}
        self._is_whole = False
        self._memory: dict[tuple[object, ...], Any] = {}

    def take_stream(self, name: str, facts: Iterable[Fact[Event]]) -> None:
        """Takes in a stream; one that does not exist has no facts."""
        self._streams[name] = tuple(facts)
        self._memory.clear()

    def take_blob(self, digest: str, data: bytes | None) -> None:
        """Takes in a blob; None for one that is not stored, or not as it was."""
        self._blobs[digest] = data
        self._memory.clear()

    def take_mentions(self, word: str, found: Iterable[Mention]) -> None:
        """Takes in every event of the run that names something."""
        self._mentions[word] = tuple(found)
        self._memory.clear()

    def whole(self) -> None:
        """Says that every stream of the run has been taken in: what is not there does not exist."""
        self._is_whole = True
        self._memory.clear()
        gathered: dict[str, list[Mention]] = {}
        for facts in self._streams.values():
            for fact in facts:
                for word in words_of(fact.event):
                    gathered.setdefault(word, []).append(Mention(fact.stream, fact.seq))
        self._mentions |= {word: tuple(found) for word, found in gathered.items()}

    def stream(self, name: str) -> tuple[Fact[Event], ...]:
        """A stream's events; none where it does not exist, or was not read yet."""
        if name not in self._streams and not self._is_whole:
            self.needs.streams.add(name)
        return self._streams.get(name, ())

    def every(self, stream: str, kind: type[E]) -> list[Fact[E]]:
        """A stream's events of one type, in order."""
        return self.remembered(
            (stream, kind),
            lambda: [cast("Fact[E]", fact) for fact in self.stream(stream) if isinstance(fact.event, kind)],
        )

    def first(self, stream: str, kind: type[E]) -> Fact[E] | None:
        """The first of them."""
        return next(iter(self.every(stream, kind)), None)

    def remembered(self, key: tuple[object, ...], compute: Callable[[], T]) -> T:
        """What was computed before of the same that was read, under a key of its own."""
        if key not in self._memory:
            self._memory[key] = compute()
        return self._memory[key]

    def names(self, kind: str) -> list[str]:
        """Streams taken in whose name begins with `<kind>/<run>/`, in order."""
        prefix = f"{kind}/{self.run}/"
        return self.remembered(
            ("names", kind),
            lambda: sorted(name for name, facts in self._streams.items() if facts and name.startswith(prefix)),
        )

    def of_run(self, kind: type[E]) -> list[Fact[E]]:
        """Events of one type of the run's own stream."""
        return self.every(run_stream(self.run), kind)

    def blob(self, digest: str) -> bytes | None:
        """A blob's bytes; None where it is not stored, or was not read yet."""
        if digest not in self._blobs:
            self.needs.blobs.add(digest)
        return self._blobs.get(digest)

    def mentions(self, word: str) -> tuple[Mention, ...]:
        """Every event of the run that names something."""
        if word not in self._mentions and not self._is_whole:
            self.needs.mentions.add(word)
        return self._mentions.get(word, ())

    def batch(self, digest: str) -> BatchManifest | None:
        """A batch manifest; None where it is not there, or no such list."""
        if digest not in self._batches:
            data = self.blob(digest)
            if data is None:
                return None
            try:
                self._batches[digest] = BatchManifest.model_validate_json(data)
            except ValidationError:
                self._batches[digest] = None
        return self._batches[digest]

    def samples(self, digest: str) -> Mapping[str, ManifestSample]:
        """Rollouts of a batch, by stream."""
        if digest not in self._samples:
            batch = self.batch(digest)
            if batch is None:
                return {}
            self._samples[digest] = {sample.stream: sample for sample in batch.samples}
        return self._samples[digest]


class Answer(NamedTuple, Generic[T]):
    """What a question came to."""

    value: T
    """It."""


def ask(source: RunSource, question: Callable[[RunSource], T]) -> Answer[T] | None:
    """The answer to a question, or None where more has to be read first: `source.needs` says what.

    Raises:
        NoSuchThing: all is read, and there is no such thing.
    """
    source.needs = Needs()
    try:
        answer = question(source)
    except NoSuchThing:
        if source.needs:
            return None
        raise
    return None if source.needs else Answer(answer)


def words_of(event: Event) -> Iterable[str]:
    """What `RunSource.mentions` finds an event by: the blobs that it names, and its verdict."""
    yield from blobs_of(event)
    if isinstance(event, RolloutEnded | RolloutGraded):
        yield event.verdict_key
