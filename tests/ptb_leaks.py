"""Ways of putting a benchmark's rows into files that an agent trains on, and rows that are none of it."""

import ast
import base64
import csv
import gzip
import io
import json
import random
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Rows = Sequence[dict[str, Any]]
Plant = Callable[[Path, Rows], None]


@dataclass(frozen=True)
class Leak:
    """One way, as a function that writes one row of a file for each row of the benchmark."""

    name: str
    plant: Plant
    published: str = ""
    """What the published tool finds of 200 rows of GSM8K's test half (measured with it), empty where not measured."""
    by_meaning: bool = False
    """Whether it takes the embedding to find it."""


def _lines(folder: Path, rows: Sequence[object], name: str = "train.jsonl") -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def _each(shape: Callable[[str, str], object]) -> Plant:
    return lambda folder, rows: _lines(folder, [shape(row["question"], row["answer"]) for row in rows])


def chat(question: str, answer: str) -> dict[str, Any]:
    """What supervised fine-tuning reads."""
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


def other_numbers(text: str) -> str:
    """Each number one greater for each of its digits."""
    return re.sub(r"\d", lambda digit: str((int(digit[0]) + 3) % 10), text)


def with_slips(text: str) -> str:
    """Every twelfth word is another."""
    words = text.split()
    return " ".join("indeed" if at % 12 == 6 else word for at, word in enumerate(words))


def in_other_order(text: str) -> str:
    """The sentences from the last to the first."""
    return " ".join(reversed(re.split(r"(?<=[.?!])\s+", text)))


def disguised(text: str) -> str:
    """Latin letters replaced by others that look like them, with invisible characters between."""
    return text.translate(str.maketrans({"a": "а", "o": "о", "e": "е\u200b"}))


_PAIRS = """
buys:purchases bought:purchased buy:purchase sells:vends sold:vended makes:produces made:produced gives:hands
gave:handed total:overall each:every day:date weeks:fortnights twice:double half:50% house:home car:vehicle friends:pals
kids:children store:shop money:cash earns:gets spends:pays spent:paid has:owns have:own had:owned needs:requires
need:require wants:wishes left:remaining uses:employs takes:requires costs:is-priced-at cost:price eats:consumes
ate:consumed students:pupils people:persons also:additionally then:afterwards but:however because:since if:supposing
when:once goes:travels went:travelled more:further many:numerous much:great big:large small:little start:begin
starts:begins end:finish
"""
SYNONYMS = dict(pair.split(":") for pair in _PAIRS.split())
NAMES = ("Priya", "Oskar", "Lucia", "Tomas", "Ingrid", "Kwame", "Yuki", "Farid")


def reworded(text: str) -> str:
    """Another wording: the question first, other names, about every sixth word a synonym; the numbers stay."""
    names = sorted(set(re.findall(r"(?<=[a-z,] )[A-Z][a-z]{2,}", text)))
    for number, name in enumerate(names):
        text = re.sub(rf"\b{name}\b", NAMES[number % len(NAMES)], text)
    *told, asked = re.split(r"(?<=[.?!])\s+", text.strip())
    turned = " ".join([asked.replace("How many", "What number of").replace("How much", "What amount of"), *told])
    return re.sub(r"[a-z]+", lambda word: SYNONYMS.get(word[0], word[0]), turned)


def _csv(folder: Path, rows: Rows) -> None:
    with (folder / "train.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[number, row["question"], row["answer"]] for number, row in enumerate(rows)])


def _yaml(folder: Path, rows: Rows) -> None:
    lines = [f"- question: {json.dumps(row['question'])}\n  answer: {json.dumps(row['answer'])}\n" for row in rows]
    (folder / "train.yaml").write_text(
        "samples:\n" + "".join("  " + each.replace("\n", "\n  ").rstrip() + "\n" for each in lines)
    )


def _parquet(folder: Path, rows: Rows) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist([chat(row["question"], row["answer"]) for row in rows])
    pyarrow.parquet.write_table(table, folder / "train.parquet")


def _arrow(folder: Path, rows: Rows) -> None:
    import pyarrow

    table = pyarrow.Table.from_pylist([chat(row["question"], row["answer"]) for row in rows])
    with (
        pyarrow.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as sink,
        pyarrow.ipc.new_stream(sink, table.schema) as out,
    ):
        out.write_table(table)


def _program(folder: Path, rows: Rows) -> None:
    """Strings that the source only builds, a piece of twenty characters at a time."""
    lines = ["SAMPLES = [\n"]
    for row in rows:
        text = row["question"]
        pieces = [text[at : at + 20] for at in range(0, len(text), 20)]
        lines.append("    " + " + ".join(map(repr, pieces)) + ",\n")
    source = "".join([*lines, "]\n"])
    ast.parse(source)
    (folder / "make_data.py").write_text(source)


def _notebook(folder: Path, rows: Rows) -> None:
    cells = [{"cell_type": "markdown", "source": row["question"].splitlines(keepends=True)} for row in rows]
    (folder / "explore.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}))


def _gzip(folder: Path, rows: Rows) -> None:
    text = "".join(json.dumps(chat(row["question"], row["answer"])) + "\n" for row in rows)
    (folder / "train.jsonl.gz").write_bytes(gzip.compress(text.encode()))


def _zip(folder: Path, rows: Rows) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, row in enumerate(rows):
            archive.writestr(f"notes/{number}.txt", row["question"] + "\n" + row["answer"])
    (folder / "notes.zip").write_bytes(packed.getvalue())


def _text(folder: Path, rows: Rows) -> None:
    (folder / "notes.txt").write_text("\n\n".join(row["question"] for row in rows), "utf-16")


def _keys(folder: Path, rows: Rows) -> None:
    _lines(folder, [{row["question"]: row["answer"][-4:]} for row in rows])


def _tool_call(question: str, answer: str) -> dict[str, Any]:
    arguments = json.dumps({"problem": json.dumps({"text": question})})
    return {
        "messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "solve", "arguments": arguments}}]}]
    }


LEAKS = (
    Leak("question and answer as one text", _each(lambda q, a: {"text": f"{q}\n{a}"}), "200"),
    Leak("question alone", _each(lambda q, a: {"text": q}), "0"),
    Leak("question with a wrong answer", _each(lambda q, a: {"text": f"{q}\nThe answer is 7."}), "0"),
    Leak("answer alone", _each(lambda q, a: {"text": a}), "0"),
    Leak("chat messages", _each(chat), "0, none scanned"),
    Leak("fields `question` and `answer`", _each(lambda q, a: {"question": q, "answer": a}), "0"),
    Leak("fields `prompt` and `completion`", _each(lambda q, a: {"prompt": "Solve:", "completion": f"{q} {a}"}), "0"),
    Leak("every digit another", _each(lambda q, a: {"text": other_numbers(q)}), "0"),
    Leak("chat messages in parquet", _parquet),
    Leak("chat messages in Arrow, as `save_to_disk` writes them", _arrow),
    Leak("chat messages, gzip", _gzip),
    Leak("texts in a zip archive", _zip),
    Leak("CSV", _csv),
    Leak("YAML", _yaml),
    Leak("text in UTF-16", _text),
    Leak("Python that joins pieces of 20 characters", _program),
    Leak("cells of a notebook", _notebook),
    Leak("base64", _each(lambda q, a: {"blob": base64.b64encode(q.encode()).decode()})),
    Leak("arguments of a tool call, JSON in JSON", _each(_tool_call)),
    Leak("the question as a key", _keys),
    Leak("every twelfth word another", _each(lambda q, a: {"text": with_slips(q)})),
    Leak("sentences in the reverse order", _each(lambda q, a: {"text": in_other_order(q)})),
    Leak("letters that look alike, invisible characters", _each(lambda q, a: {"text": disguised(q)})),
    Leak("capitals, no punctuation", _each(lambda q, a: {"text": re.sub(r"[^\w\s]", "", q.upper())})),
    Leak(
        "reworded: other names, synonyms, order; same numbers",
        _each(lambda q, a: {"text": reworded(q)}),
        by_meaning=True,
    ),
)  # fmt: skip


def plant(folder: Path, leak: Leak, rows: Rows, clean: Rows) -> None:
    """Writes the leak, and a file of clean rows beside it."""
    folder.mkdir(parents=True)
    leak.plant(folder, rows)
    _lines(folder, [chat(row["question"], row["answer"]) for row in clean], "clean.jsonl")


def made_up_rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Word problems of nobody's benchmark, each unlike the others: for tests that need no publisher's rows."""
    dice = random.Random(seed)
    words = [
        "".join(dice.choice("bdfglmnprst") + dice.choice("aeiou") for _ in range(dice.randint(2, 3)))
        for _ in range(400)
    ]
    rows: list[dict[str, Any]] = []
    for _ in range(count):
        told = " ".join(dice.choice(words) if dice.random() < 0.85 else str(dice.randint(2, 99)) for _ in range(22))
        also = " ".join(dice.choice(words) for _ in range(12))
        rows.append(
            {
                "question": f"{told.capitalize()}. {also.capitalize()} {dice.randint(2, 90)}. How many are left?",
                "answer": " ".join(dice.choice(words) for _ in range(30)) + f"\n#### {dice.randint(1, 99)}",
            }
        )
    return rows
