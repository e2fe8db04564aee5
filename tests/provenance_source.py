"""What is read of a run in memory: as a whole, or a little at a time as it is asked for."""

from collections.abc import Callable
from typing import TypeVar

from stepwell.audit.provenance.source import Fact, Mention, RunSource, ask, words_of
from stepwell.events.base import Event
from tests.book import MemoryBook

T = TypeVar("T")
FIRST = ("run", "weights", "operator", "quarantine", "engine", "validation")
"""Kinds of streams that are there before anything is asked."""


def facts_of(book: MemoryBook, stream: str) -> list[Fact[Event]]:
    """A stream."""
    pairs = zip(book.events.get(stream, []), book.hashes.get(stream, []), strict=True)
    return [Fact(stream, seq, hash, event) for seq, (event, hash) in enumerate(pairs)]


def whole_source(book: MemoryBook) -> RunSource:
    """All of it."""
    source = RunSource(book.run)
    for stream in book.events:
        source.take_stream(stream, facts_of(book, stream))
    for digest, data in book.blobs.items():
        source.take_blob(digest, data)
    source.whole()
    return source


class PatientReader:
    """Reads what a question needs, as `db.run_source.SourceReader` does."""

    def __init__(self, book: MemoryBook) -> None:
        self._book = book
        self.source = RunSource(book.run)
        for stream in (f"{kind}/{book.run}" for kind in FIRST):
            self.source.take_stream(stream, facts_of(book, stream))
        for stream in book.events:
            if stream.partition("/")[0] in FIRST:
                self.source.take_stream(stream, facts_of(book, stream))
        self.streams_read = 0

    def answer(self, question: Callable[[RunSource], T]) -> T:
        """The answer."""
        while (found := ask(self.source, question)) is None:
            needs = self.source.needs
            self.streams_read += len(needs.streams)
            for stream in needs.streams:
                self.source.take_stream(stream, facts_of(self._book, stream))
            for digest in needs.blobs:
                self.source.take_blob(digest, self._book.blobs.get(digest))
            for word in needs.mentions:
                self.source.take_mentions(word, self._mentions(word))
        return found.value

    def _mentions(self, word: str) -> list[Mention]:
        return [
            Mention(stream, seq)
            for stream, events in self._book.events.items()
            for seq, event in enumerate(events)
            if any(each.startswith(word) for each in words_of(event))
        ]
