"""Reads of a run what a question about its provenance needs, and no more."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from db.blobs import BlobStore
from db.errors import BlobCorrupt, BlobMissing
from db.ledger import Ledger
from db.recorded import Recorded
from stepwell.audit.provenance.source import Fact, Mention, Needs, RunSource, ask, words_of
from stepwell.events import GroupOpened, RolloutGraded, StepAdmitted, VerdictReached
from stepwell.events.base import Event
from stepwell.events.streams import operator_stream, quarantine_stream, run_stream, verdict_stream, weights_stream

T = TypeVar("T")

BATCH = 500
"""Streams, or blobs, asked for at once."""
_MENTIONED_IN = ("validation", "prompt", "rollout")
"""Kinds of streams that are looked through; verdicts, which runs share, are too."""


class SourceReader:
    """Reads one run.

    Args:
        ledger: With a role that may read.
        blobs: The store of the same services.
        run: Name of the run.
    """

    def __init__(self, ledger: Ledger, blobs: BlobStore, run: str) -> None:
        self.source = RunSource(run)
        self._ledger = ledger
        self._blobs = blobs

    async def open(self) -> None:
        """Reads what every question needs: the run's own streams, its engines, its validations.

        Raises:
            DatabaseUnavailable: no connection.
            UnknownEvent: an event of a newer Stepwell.
        """
        run = self.source.run
        await self._streams(of(run) for of in (run_stream, weights_stream, operator_stream, quarantine_stream))
        for kind in ("engine", "validation"):
            self._take(await self._ledger.read_prefix(f"{kind}/{run}/"))

    async def answer(self, question: Callable[[RunSource], T]) -> T:
        """What a pure function says of the run, with whatever it looks for read.

        Raises:
            NoSuchThing: the run has not what is asked for.
            DatabaseUnavailable, BlobStoreUnavailable: no answer.
            UnknownEvent: an event of a newer Stepwell.
        """
        while (found := ask(self.source, question)) is None:
            await self._load(self.source.needs)
        return found.value

    async def whole(self) -> None:
        """Reads every stream of the run, and the blobs that a whole graph needs. Raises as `answer`."""
        run = self.source.run
        for kind in ("prompt", "rollout"):
            self._take(await self._ledger.read_prefix(f"{kind}/{run}/"))
        graded = [fact for name in self.source.names("rollout") for fact in self.source.every(name, RolloutGraded)]
        await self._streams({verdict_stream(fact.event.verdict_key) for fact in graded})
        self.source.whole()
        verdicts = {verdict_stream(fact.event.verdict_key) for fact in graded}
        wanted = {fact.event.report for name in verdicts for fact in self.source.every(name, VerdictReached)}
        wanted |= {fact.event.manifest for fact in self.source.of_run(StepAdmitted)}
        groups = self.source.names("prompt")
        wanted |= {fact.event.task for name in groups for fact in self.source.every(name, GroupOpened)}
        await self._load(Needs(blobs=wanted))

    async def _load(self, needs: Needs) -> None:
        await self._streams(needs.streams)
        for digests in _batches(needs.blobs):
            await self._read_blobs(digests)
        for word in needs.mentions:
            await self._read_mentions(word)

    async def _streams(self, names: Iterable[str]) -> None:
        for batch in _batches(names):
            for name, recorded in (await self._ledger.read_many(batch)).items():
                self.source.take_stream(name, map(_fact, recorded))

    def _take(self, recorded: Iterable[Recorded]) -> None:
        by_stream: dict[str, list[Fact[Event]]] = {}
        for each in recorded:
            by_stream.setdefault(each.stream, []).append(_fact(each))
        for name, facts in by_stream.items():
            self.source.take_stream(name, facts)

    async def _read_blobs(self, digests: list[str]) -> None:
        """One that is missing or corrupt is known to be so: an explanation goes on, a verification says it."""
        try:
            found = await self._blobs.get_many(digests)
        except (BlobMissing, BlobCorrupt):
            found = {}
        for digest in digests:
            self.source.take_blob(digest, found.get(digest) or await self._one(digest))

    async def _one(self, digest: str) -> bytes | None:
        try:
            return await self._blobs.get(digest)
        except (BlobMissing, BlobCorrupt):
            return None

    async def _read_mentions(self, word: str) -> None:
        run = self.source.run
        found = [
            Mention(name, fact.seq)
            for name in (run_stream(run), weights_stream(run))
            for fact in self.source.stream(name)
            if any(each.startswith(word) for each in words_of(fact.event))
        ]
        for prefix in (*(f"{kind}/{run}/" for kind in _MENTIONED_IN), "verdict/"):
            found += [Mention(each.stream, each.seq) for each in await self._ledger.mentions(prefix, word)]
        self.source.take_mentions(word, found)


def _fact(recorded: Recorded) -> Fact[Event]:
    return Fact(recorded.stream, recorded.seq, recorded.envelope.hash, recorded.event)


def _batches(items: Iterable[str]) -> Iterable[list[str]]:
    rest = iter(list(items))
    while batch := list(islice(rest, BATCH)):
        yield batch
