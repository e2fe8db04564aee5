"""The rows of a benchmark as what a leak of them would show: the question's words, and the answer's."""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from stepwell.ptb.contamination.leaves import leaves_of
from stepwell.ptb.contamination.words import words_of

PartKind = Literal["question", "answer"]
"""Which side of a row."""

QUESTION_KEYS = ("question", "prompt", "problem", "Question", "input", "instruction")
"""Fields that hold the question, the first that a row has."""
ANSWER_KEYS = (
    "answer", "solution", "canonical_solution", "ground_truth", "Correct Answer", "Explanation", "rubrics",
    "ideal_completions_data", "completion", "messages",
)  # fmt: skip
"""Fields that hold an answer or what it is checked against; each is looked for by itself."""
ID_KEYS = ("id", "task_id", "prompt_id", "uid", "Record ID")
"""Fields that name the row, the first that it has; without one the row's number does."""

LEAST_DIFFERENT = 8
"""Different words that a part must have: `assert candidate == …` a hundred times over is no text."""
LEAST_WORDS: Mapping[PartKind, int] = {"question": 8, "answer": 16}
"""A shorter part cannot be told from what anybody writes, and is not looked for."""


@dataclass(frozen=True)
class Part:
    """A text that must not be in what is checked."""

    item: str
    """Id of the benchmark's row."""
    kind: PartKind
    """Its side."""
    text: str
    """As the benchmark has it."""
    words: tuple[str, ...]
    """Of the text."""


@dataclass(frozen=True)
class Benchmark:
    """What is looked for."""

    parts: tuple[Part, ...]
    """Each long enough to be told apart."""
    items: int
    """Rows in all."""
    unindexed: tuple[str, ...]
    """Ids of rows of which no part is long enough."""


class UnreadableBenchmark(ValueError):
    """A benchmark file that cannot be read, or has no rows."""


def load_benchmark(files: Sequence[Path]) -> Benchmark:
    """The rows of `.jsonl`, `.jsonl.gz` or `.json` files.

    Raises:
        UnreadableBenchmark: a file is missing, is none of them, or has no row with a question.
    """
    rows: list[Mapping[str, object]] = []
    for path in files:
        found = list(_rows(path))
        if not found:
            raise UnreadableBenchmark(f"{path} has no rows: wanted one JSON object a line, or a list of them")
        rows += found
    return benchmark_of(rows)


def benchmark_of(rows: Sequence[Mapping[str, object]]) -> Benchmark:
    """A benchmark of rows with the publishers' fields.

    Raises:
        UnreadableBenchmark: a row has no question.
    """
    parts: list[Part] = []
    unindexed: list[str] = []
    for number, row in enumerate(rows):
        item = next((str(row[key]) for key in ID_KEYS if key in row), str(number))
        found = [part for part in _parts(item, row) if _can_be_told(part)]
        parts += found
        if not found:
            unindexed.append(item)
    return Benchmark(tuple(parts), len(rows), tuple(unindexed))


def _parts(item: str, row: Mapping[str, object]) -> Iterator[Part]:
    question = next((key for key in QUESTION_KEYS if key in row), None)
    if question is None:
        raise UnreadableBenchmark(
            f"row {item} has the fields {', '.join(row)}: wanted one of {', '.join(QUESTION_KEYS)} for its question"
        )
    for key in (question, *(key for key in ANSWER_KEYS if key in row)):
        kind: PartKind = "question" if key == question else "answer"
        text = "\n".join(_said(row[key]))
        yield Part(item, kind, text, tuple(words_of(text)))


def _can_be_told(part: Part) -> bool:
    return len(part.words) >= LEAST_WORDS[part.kind] and len(set(part.words)) >= LEAST_DIFFERENT


def _said(value: object) -> Iterator[str]:
    """Strings of a field; of a conversation what was said, not by whom; of a rubric its criteria, not its labels."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        spoken = [key for key in ("content", "criterion", "ideal_completion") if key in fields]
        for key in spoken or list(fields):
            yield from _said(fields[key])
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _said(each)
    else:
        yield from leaves_of(value).texts


def _rows(path: Path) -> Iterator[Mapping[str, object]]:
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode("utf-8")
        loaded: list[object] = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
    except (OSError, EOFError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UnreadableBenchmark(f"cannot read {path}: {error}; wanted .jsonl, .jsonl.gz or .json") from error
    for row in loaded:
        if not isinstance(row, Mapping):
            raise UnreadableBenchmark(f"{path} has a row that is a {type(row).__name__}: wanted an object")
        yield cast("Mapping[str, object]", row)
