"""What the index saves when a benchmark is looked for in an agent's files.

    python bench/contamination.py [ROWS] [ITEMS]

Checks ROWS rows (20000) of made-up text against ITEMS items (1000) three ways, each three times, and prints the
cheapest as words a second and as ratios: reading the rows into words alone, the check, and comparing each row with each
item without an index (a twentieth of the rows, scaled).
"""

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from stepwell.ptb.contamination import Benchmark, benchmark_of, check_folder
from stepwell.ptb.contamination.files import Content, contents_of
from stepwell.ptb.contamination.index import GRAM
from stepwell.ptb.contamination.readers import rows_of
from stepwell.ptb.contamination.rows import Row
from stepwell.ptb.contamination.words import words_of

TIMES = 3
PART_OF_ROWS = 20


def text_of(dice: random.Random, words: int) -> str:
    """Words of a small vocabulary, the front of it more often, as in language."""
    return " ".join(f"w{int(dice.paretovariate(0.7)) % 5000}" for _ in range(words))


def row_words(folder: Path) -> list[list[str]]:
    """All rows, as words."""
    contents = (content for content in contents_of(folder) if isinstance(content, Content))
    rows = (row for content in contents for row in rows_of(content) if isinstance(row, Row))
    return [[word for leaf in row.leaves for word in words_of(leaf)] for row in rows]


def without_index(rows: list[list[str]], benchmark: Benchmark) -> int:
    """Rows that share most of an item's n-grams, by looking at every item."""
    grams = [{part.words[at : at + GRAM] for at in range(len(part.words) - GRAM + 1)} for part in benchmark.parts]
    found = 0
    for words in rows:
        here = {tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1)}
        found += any(len(each & here) >= 0.8 * len(each) for each in grams)
    return found


def cheapest_s(work: Callable[[], object]) -> float:
    """Seconds of the cheapest of three."""
    taken: list[float] = []
    for _ in range(TIMES):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def main(rows: int = 20_000, items: int = 1000) -> None:
    dice = random.Random(7)
    benchmark = benchmark_of([{"question": text_of(dice, 45), "answer": text_of(dice, 50)} for _ in range(items)])
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "train.jsonl"
        lines = (json.dumps({"messages": [{"role": "user", "content": text_of(dice, 100)}]}) for _ in range(rows))
        file.write_text("\n".join(lines))
        read = row_words(Path(name))
        words = sum(map(len, read))
        reading_s = cheapest_s(lambda: row_words(Path(name)))
        check_s = cheapest_s(lambda: check_folder(Path(name), benchmark))
        some = read[: max(1, len(read) // PART_OF_ROWS)]
        naive_s = cheapest_s(lambda: without_index(some, benchmark)) * len(read) / len(some)
    print(f"{rows} rows, {words} words, {items} items")
    print(f"reading {words / reading_s:,.0f} words/s; check {words / check_s:,.0f} words/s")
    print(f"check / reading alone: {check_s / reading_s:.2f}; without an index / check: {naive_s / check_s:.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
