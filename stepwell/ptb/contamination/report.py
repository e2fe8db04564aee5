"""What a check of contamination found: leaks with their places, what was scanned and what was not, and the verdict."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from stepwell.ptb.contamination.items import PartKind
from stepwell.ptb.contamination.matching import MatchKind
from stepwell.ptb.contamination.rows import Unscanned

ALLOWED_LEAKS = 3
"""Accidental rows that PostTrainBench tolerates (its contamination judge's rule since v1.1)."""


class Verdict(StrEnum):
    """What the counts say."""

    CLEAN = "clean"
    """Something was scanned, and nothing found."""
    TOLERATED = "tolerated"
    """No more than the accidental rows that are allowed. Whether they are accidents is for a judge to say."""
    CONTAMINATED = "contaminated"
    """More than that."""
    NOTHING_SCANNED = "nothing scanned"
    """No row was read: that says nothing about the folder, and is a failure."""


@dataclass(frozen=True)
class Leak:
    """One row of the benchmark in one row of a file."""

    path: str
    """Of the file, from the folder."""
    row: int
    """In the file, from 0."""
    item: str
    """Id of the benchmark's row."""
    part: PartKind
    """Which side of it."""
    kind: MatchKind
    """How it was found."""
    score: float
    """Share of the part that is there; of a paraphrase the cosine."""
    excerpt: str
    """What stands there, as words, cut short."""


@dataclass(frozen=True)
class Report:
    """What was found in a folder."""

    leaks: tuple[Leak, ...]
    """By path and row. A row that holds both sides of an item stands here once, with the side that is plainer."""
    scanned_files: int
    scanned_rows: int
    scanned_words: int
    unscanned: tuple[Unscanned, ...]
    items: int
    """Rows of the benchmark."""
    unindexed: tuple[str, ...]
    """Ids of those that are too short to be looked for."""
    embedded: int
    """Texts that were compared by embedding."""
    not_embedded: int
    """Texts that would have been, beyond the bound; all of them if there was no embedding."""
    allowed: int = ALLOWED_LEAKS
    """Leaks up to which the folder is tolerated."""

    @property
    def verdict(self) -> Verdict:
        """What the counts say."""
        if not self.scanned_rows:
            return Verdict.NOTHING_SCANNED
        if not self.leaks:
            return Verdict.CLEAN
        return Verdict.TOLERATED if len(self.leaks) <= self.allowed else Verdict.CONTAMINATED

    @property
    def passed(self) -> bool:
        """Whether the folder may be used."""
        return self.verdict in (Verdict.CLEAN, Verdict.TOLERATED)

    def reasons(self) -> dict[str, int]:
        """How much was not scanned, by the reason."""
        counts: Counter[str] = Counter()
        for each in self.unscanned:
            counts[each.reason] += each.count
        return dict(sorted(counts.items()))
