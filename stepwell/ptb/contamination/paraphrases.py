"""Other wordings of a benchmark's questions: near in meaning, and with the same numbers.

Nearness alone cannot tell a reworded question from another of its kind (many questions of GSM8K's training half are as
near to one of its test half), so numbers must agree, or the texts be almost the same. docs/contamination.md has the
measurements behind the bounds.
"""

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from stepwell.ptb.contamination.embedding import Embeddings
from stepwell.ptb.contamination.items import Benchmark
from stepwell.ptb.contamination.report import Leak
from stepwell.ptb.contamination.rows import Row
from stepwell.ptb.contamination.words import numbers_of, words_of

ALMOST_SAME = 0.97
"""Cosine from which on the texts are the same whatever their numbers."""
SAME_NUMBERS = 0.75
"""Cosine that is enough where the numbers agree."""
LEAST_NUMBERS = 2
"""Different numbers that a question must have for their agreement to mean anything."""
AGREEMENT = 0.8
"""Of the different numbers in question and text together, the share that must be in both."""
MOST_TEXTS = 10_000
"""Compared at most; those that share most rare words with one question come first."""
LEAST_WORDS, UNIT_WORDS, STRIDE_WORDS = 8, 120, 60
"""A text of fewer words is no question; one of more than the second is compared in overlapping pieces."""
RARE_SHARE = 0.03
"""A word that at most this share of the questions has is rare."""
EXCERPT_CHARACTERS = 240


class Embedder(Protocol):
    """Turns texts into vectors."""

    def embed(self, texts: list[str]) -> Embeddings:
        """Texts × dimensions, each row of length 1."""
        ...


@dataclass(frozen=True, order=True)
class _Unit:
    rank: tuple[int, str]
    """Rare words shared with one question, then the digest of the text: the order is the same on every machine."""
    path: str
    row: int
    text: str


class ParaphraseSearch:
    """Collects texts while files stream past, then compares the most promising.

    Args:
        benchmark: What is looked for.
        embedder: Turns texts into vectors.
        most: Texts that are compared at most.
    """

    def __init__(self, benchmark: Benchmark, embedder: Embedder, most: int = MOST_TEXTS) -> None:
        self.embedded = 0
        self.not_embedded = 0
        self._embedder = embedder
        self._most = most
        self._parts = [part for part in benchmark.parts if part.kind == "question"]
        self._numbers = [set(numbers_of(part.words)) for part in self._parts]
        self._having: defaultdict[str, list[int]] = defaultdict(list)
        for number, part in enumerate(self._parts):
            for word in set(part.words):
                self._having[word].append(number)
        self._rare = max(2, int(RARE_SHARE * len(self._parts)))
        self._kept: list[_Unit] = []

    def see(self, row: Row) -> None:
        """Takes up the texts of a row."""
        for leaf in row.leaves:
            for text in _units(leaf):
                unit = _Unit(self._rank(text), row.path, row.number, text)
                if len(self._kept) < self._most:
                    heapq.heappush(self._kept, unit)
                else:
                    heapq.heappushpop(self._kept, unit)
                    self.not_embedded += 1

    def found(self) -> Iterator[Leak]:
        """Compares what was kept; a row's nearest question, where it is near enough."""
        units = sorted(self._kept)
        self.embedded = len(units)
        if not units or not self._parts:
            return
        wanted_PD = self._embedder.embed([part.text for part in self._parts])
        near_UP = self._embedder.embed([unit.text for unit in units]) @ wanted_PD.T
        for number, unit in enumerate(units):
            numbers = set(numbers_of(words_of(unit.text)))
            for part in near_UP[number].argsort()[::-1][:5].tolist():
                cosine = float(near_UP[number, part])
                if cosine >= ALMOST_SAME or (cosine >= SAME_NUMBERS and self._agree(part, numbers)):
                    item = self._parts[part].item
                    excerpt = unit.text[:EXCERPT_CHARACTERS]
                    yield Leak(unit.path, unit.row, item, "question", "paraphrase", cosine, excerpt)
                    break

    def _agree(self, part: int, numbers: set[str]) -> bool:
        wanted = self._numbers[part]
        return len(wanted) >= LEAST_NUMBERS and len(wanted & numbers) >= AGREEMENT * len(wanted | numbers)

    def _rank(self, text: str) -> tuple[int, str]:
        shared: Counter[int] = Counter()
        for word in set(words_of(text)):
            having = self._having.get(word, [])
            if len(having) <= self._rare:
                shared.update(having)
        most = max(shared.values(), default=0)
        return most, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _units(leaf: str) -> Iterator[str]:
    words = leaf.split()
    if len(words) < LEAST_WORDS:
        return
    if len(words) <= UNIT_WORDS:
        yield leaf
        return
    for start in range(0, len(words) - UNIT_WORDS + STRIDE_WORDS, STRIDE_WORDS):
        yield " ".join(words[start : start + UNIT_WORDS])
