"""The tables of docs/contamination.md: leaks planted in files, clean rows, and what is found of them."""

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepwell.ptb.contamination import Benchmark, Report, benchmark_of, check_folder
from stepwell.ptb.contamination.paraphrases import Embedder, ParaphraseSearch
from tests.ptb_leaks import LEAKS, chat, plant

PAGE = Path(__file__).resolve().parents[1] / "docs" / "contamination.md"
BEGIN = "<!-- from here to the mark below: written by tests/unit/test_ptb_contamination_table.py -->"
END = "<!-- end of what the test writes -->"
PLANTED, CLEAN = 200, 1000
"""Rows of a leak, of GSM8K's test half, and rows beside them, of its training half."""


@dataclass(frozen=True)
class Line:
    """One line of a table."""

    name: str
    planted: int
    by_words: int
    """Planted rows of the benchmark that were found by words and numbers."""
    by_meaning: int | None
    """The same with paraphrases; None where it was not looked for."""
    false: int
    """Clean rows that were flagged, by either."""
    published: str

    @property
    def cells(self) -> tuple[str, ...]:
        """As the page has them."""
        found = self.by_words if self.by_meaning is None else self.by_meaning
        precision = found / (found + self.false) if found else 0.0
        meaning = "" if self.by_meaning is None else str(self.by_meaning)
        recall = f"{found / self.planted:.3f}"
        return (
            self.name, str(self.planted), str(self.by_words), meaning, str(self.false), recall, f"{precision:.3f}",
            self.published or "not measured",
        )  # fmt: skip


Shape = Callable[[dict[str, Any]], object]
"""What an agent makes of a row."""
HEADING = (
    "leak", "rows", "found by words", "with paraphrases", "clean rows flagged", "recall", "precision", "published tool",
)  # fmt: skip


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of `.jsonl` or `.jsonl.gz`."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [json.loads(line) for line in text.splitlines()]


def gsm8k_lines(folder: Path, data: Path, embedder: Embedder | None) -> list[Line]:
    """A line for each kind of leak."""
    rows, clean = read_rows(data / "gsm8k_test.jsonl")[:PLANTED], read_rows(data / "gsm8k_train.jsonl")[:CLEAN]
    benchmark = benchmark_of(rows)
    lines: list[Line] = []
    for number, leak in enumerate(LEAKS):
        here = folder / str(number)
        plant(here, leak, rows, clean)
        report = check_folder(here, benchmark)
        meaning = None
        if leak.by_meaning and embedder is not None:
            search = ParaphraseSearch(benchmark, embedder)
            meaning = check_folder(here, benchmark, paraphrases=search)
        false = _false(meaning or report)
        by_meaning = None if meaning is None else _found(meaning)
        lines.append(Line(leak.name, len(rows), _found(report), by_meaning, false, leak.published))
    return lines


def other_lines(folder: Path, data: Path) -> list[Line]:
    """Leaks of the other benchmarks."""
    human, bfcl, health = "humaneval.jsonl.gz", "bfcl_exec_simple.jsonl", "healthbench_easy245.jsonl"
    shapes: list[tuple[str, str, Shape, str]] = [
        ("HumanEval: prompt and solution", human, lambda row: row["prompt"] + row["canonical_solution"], "163"),
        ("HumanEval: prompt alone, in a chat", human, lambda row: chat(row["prompt"], "pass"), ""),
        ("BFCL: the user's words", bfcl, _asked, "0"),
        ("BFCL: the user's words and the call", bfcl, lambda row: _asked(row) + row["ground_truth"][0], "95"),
        ("HealthBench: conversation", health, lambda row: {"messages": row["prompt"]}, ""),
        ("HealthBench: rubric", health, lambda row: [each["criterion"] for each in row["rubrics"]], ""),
        (
            "Arena-Hard: prompt in a chat",
            "arenahard_writing250_question.jsonl",
            lambda row: chat(row["prompt"], "Sure."),
            "",
        ),
    ]
    clean = read_rows(data / "gsm8k_train.jsonl")[:CLEAN]
    lines: list[Line] = []
    for number, (name, file, shape, published) in enumerate(shapes):
        rows, here = read_rows(data / file), folder / f"other-{number}"
        _write(here, "train.jsonl", [{"text": shape(row)} for row in rows])
        _write(here, "clean.jsonl", clean)
        report = check_folder(here, benchmark_of(rows))
        lines.append(Line(name, len(rows), _found(report), None, _false(report), published))
    return lines


def control_lines(folder: Path, data: Path) -> list[tuple[str, str, str]]:
    """Clean rows against benchmarks: what was looked at, rows, rows flagged."""
    names = {
        "GSM8K test": "gsm8k_test.jsonl",
        "HumanEval": "humaneval.jsonl.gz",
        "BFCL": "bfcl_exec_simple.jsonl",
        "HealthBench": "healthbench_easy245.jsonl",
        "Arena-Hard": "arenahard_writing250_question.jsonl",
    }
    benchmarks: dict[str, Benchmark] = {name: benchmark_of(read_rows(data / file)) for name, file in names.items()}
    train = read_rows(data / "gsm8k_train.jsonl")
    answers = [
        {"text": row["messages"][-1]["content"]}
        for row in read_rows(data / "arenahard_writing250_baseline_qwen3-1.7b.jsonl")
    ]
    lines: list[tuple[str, str, str]] = []
    for number, (name, rows) in enumerate({"GSM8K train": train, "a model's answers to Arena-Hard": answers}.items()):
        here = folder / f"control-{number}"
        _write(here, "clean.jsonl", rows)
        for benchmark, wanted in benchmarks.items():
            if name.endswith(f"to {benchmark}"):
                continue  # not clean: three of the answers quote their prompts whole
            report = check_folder(here, wanted)
            where = "; ".join(f"row {leak.row} is {leak.item}, {leak.kind}" for leak in report.leaks)
            said = f"{len(report.leaks)} ({where})" if where else "0"
            lines.append((f"{name} against {benchmark}", str(len(rows)), said))
    return lines


def markdown(lines: Sequence[Line], others: Sequence[Line], controls: Sequence[tuple[str, str, str]]) -> str:
    """The three tables."""
    return "\n".join(
        [
            *_table(HEADING, [line.cells for line in (*lines, *others)]),
            "",
            *_table(("clean rows", "rows", "flagged"), controls),
        ]
    )


def write(page: Path, tables: str) -> None:
    """Replaces what stands between the marks.

    Raises:
        ValueError: the page has not both marks, in order.
    """
    above, first, rest = page.read_text("utf-8").partition(BEGIN)
    _, second, below = rest.partition(END)
    if not first or not second:
        raise ValueError(f"{page} has no lines {BEGIN!r} and {END!r}: put them where the tables belong")
    page.write_text(f"{above}{BEGIN}\n\n{tables}\n\n{END}{below}", "utf-8")


def cells_of(page: str) -> list[tuple[str, ...]]:
    """The lines of the tables that stand on a page."""
    table = page.partition(BEGIN)[2].partition(END)[0]
    return [tuple(line[2:-2].split(" | ")) for line in table.split("\n") if line.startswith("| ")]


def _table(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    rows = [heading, ["---"] * len(heading), *lines]
    return ["| " + " | ".join(cells) + " |" for cells in rows]


def _asked(row: dict[str, Any]) -> str:
    said: str = row["question"][0][0]["content"]
    return said


def _found(report: Report) -> int:
    return len({leak.item for leak in report.leaks if leak.path != "clean.jsonl"})


def _false(report: Report) -> int:
    return len({leak.row for leak in report.leaks if leak.path == "clean.jsonl"})


def _write(folder: Path, name: str, rows: Sequence[object]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
