"""Looks for the rows of a benchmark in a folder: the files stream past an index of the benchmark.

Memory holds the index, one file, and a batch of its rows. Reads only; executes and unpickles nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stepwell.ptb.contamination.files import contents_of
from stepwell.ptb.contamination.index import NgramIndex
from stepwell.ptb.contamination.items import Benchmark
from stepwell.ptb.contamination.leaves import Decode
from stepwell.ptb.contamination.matching import Matcher, MatchKind, widened
from stepwell.ptb.contamination.paraphrases import ParaphraseSearch
from stepwell.ptb.contamination.readers import rows_of
from stepwell.ptb.contamination.report import ALLOWED_LEAKS, Leak, Report
from stepwell.ptb.contamination.rows import Row, Unscanned
from stepwell.ptb.contamination.words import words_of

BATCH_WORDS = 50_000
"""Words of rows that are looked up together."""
EXCERPT_WORDS = 40
"""Of a leak that the report shows."""

_PLAINER: dict[MatchKind, int] = {"verbatim": 0, "numbers changed": 1, "paraphrase": 2}


@dataclass(frozen=True)
class Check:
    """How a folder is looked at."""

    exclude: tuple[str, ...] = ()
    """Patterns of paths that are passed over, and counted as not scanned: the benchmark's own copy."""
    allowed: int = ALLOWED_LEAKS
    """Leaks up to which the folder is tolerated."""
    decode: Decode | None = None
    """Reads token ids."""


def check_folder(
    folder: Path, benchmark: Benchmark, check: Check | None = None, paraphrases: ParaphraseSearch | None = None
) -> Report:
    """Looks for a benchmark in a folder or file.

    Args:
        folder: Of the agent.
        benchmark: What must not be in it.
        check: How it is looked at.
        paraphrases: Looks for other wordings; None looks for words only.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    check = check or Check()
    scan = _Scan(benchmark, paraphrases)
    for content in contents_of(folder, check.exclude):
        if isinstance(content, Unscanned):
            scan.unscanned.append(content)
            continue
        before = scan.rows
        for batch in _batches(rows_of(content, check.decode), scan):
            scan.look_at(batch)
        scan.files += scan.rows > before
    return scan.report(check.allowed)


@dataclass
class _Words:
    row: Row
    words: list[str]


def _batches(found: Iterator[Row | Unscanned], scan: "_Scan") -> Iterator[list[_Words]]:
    batch: list[_Words] = []
    size = 0
    for each in found:
        if isinstance(each, Unscanned):
            scan.unscanned.append(each)
            continue
        words = [word for leaf in each.leaves for word in words_of(leaf)]
        batch.append(_Words(each, words))
        size += len(words)
        if size >= BATCH_WORDS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@dataclass
class _Scan:
    benchmark: Benchmark
    paraphrases: ParaphraseSearch | None
    unscanned: list[Unscanned] = field(default_factory=list[Unscanned])
    leaks: dict[tuple[str, int, str], Leak] = field(default_factory=dict[tuple[str, int, str], Leak])
    files: int = 0
    rows: int = 0
    words: int = 0
    index: NgramIndex = field(init=False)
    matcher: Matcher = field(init=False)

    def __post_init__(self) -> None:
        self.index = NgramIndex(self.benchmark.parts)
        self.matcher = Matcher(self.benchmark.parts)

    def look_at(self, batch: Sequence[_Words]) -> None:
        """Adds what is in these rows."""
        self.rows += len(batch)
        self.words += sum(len(each.words) for each in batch)
        for candidate in self.index.candidates([each.words for each in batch]):
            part, here = self.index.parts[candidate.part], batch[candidate.row]
            stretch = widened(candidate, part, here.words)
            found = self.matcher.match(part, stretch)
            if found is not None:
                excerpt = " ".join(here.words[candidate.start : candidate.end][:EXCERPT_WORDS])
                self.add(Leak(here.row.path, here.row.number, part.item, part.kind, found.kind, found.score, excerpt))
        if self.paraphrases is not None:
            for each in batch:
                self.paraphrases.see(each.row)

    def add(self, leak: Leak) -> None:
        """Keeps the plainest finding of a row and an item."""
        key = (leak.path, leak.row, leak.item)
        before = self.leaks.get(key)
        if before is None or (_PLAINER[leak.kind], -leak.score) < (_PLAINER[before.kind], -before.score):
            self.leaks[key] = leak

    def report(self, allowed: int) -> Report:
        """What was found, paraphrases among it."""
        if self.paraphrases is not None:
            found_by_words = {(path, row) for path, row, _ in self.leaks}
            for leak in self.paraphrases.found():
                if (leak.path, leak.row) not in found_by_words:
                    self.add(leak)
        return Report(
            leaks=tuple(self.leaks[key] for key in sorted(self.leaks)),
            scanned_files=self.files,
            scanned_rows=self.rows,
            scanned_words=self.words,
            unscanned=tuple(self.unscanned),
            items=self.benchmark.items,
            unindexed=self.benchmark.unindexed,
            embedded=0 if self.paraphrases is None else self.paraphrases.embedded,
            not_embedded=0 if self.paraphrases is None else self.paraphrases.not_embedded,
            allowed=allowed,
        )
