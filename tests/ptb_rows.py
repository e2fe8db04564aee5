"""Benchmark rows in their publishers' formats, made by hand; and the real ones, on machines that have them."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Real rows, on machines that have them."""


def real(name: str) -> Path:
    """A file of real rows; without it the test is skipped."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"needs real rows: {path} is not there")
    return path


def write_lines(path: Path, rows: Sequence[dict[str, object]]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def aime_rows(count: int = 30) -> list[dict[str, object]]:
    """AIME 2025 as math-ai/aime25 publishes it: texts as answers."""
    return [
        {"id": str(number), "problem": f"What is {number} times 7?", "answer": str(7 * number)}
        for number in range(count)
    ]


def write_gpqa(path: Path, count: int) -> Path:
    """GPQA as Idavidrein/gpqa publishes it: CSV with more columns than are read, some fields over several lines."""
    columns = ["Record ID", "Question", "Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3)), "Explanation"]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for number in range(count):
            choices = [f"right {number}", *(f"wrong {number}.{n}, of course" for n in (1, 2, 3))]
            writer.writerow([f"rec{number}", f"Which of these\nis right, {number}?", *choices, "So it is."])
    return path


def gsm8k_rows(results: Sequence[str]) -> list[dict[str, object]]:
    """GSM8K as openai/grade-school-math publishes it."""
    return [
        {"question": f"How many, {number}?", "answer": f"It is <<1*1=1>>so.\n#### {result}"}
        for number, result in enumerate(results)
    ]


def bfcl_row(truth: str, properties: dict[str, object]) -> dict[str, object]:
    """A row of BFCL exec_simple as its publisher's two files give it, joined by id."""
    name = truth.split("(")[0]
    parameters = {"type": "dict", "properties": properties, "required": list(properties)}
    return {
        "id": "exec_simple_0",
        "question": [[{"role": "user", "content": "Please."}]],
        "function": [{"name": name, "description": "Does it.", "parameters": parameters}],
        "ground_truth": [truth],
        "execution_result_type": ["exact_match"],
    }


def healthbench_row(points: Sequence[float]) -> dict[str, object]:
    """A row of HealthBench as openai/healthbench publishes it, with one criterion a number of points."""
    return {
        "prompt_id": "p-1",
        "prompt": [{"role": "user", "content": "My head aches."}],
        "rubrics": [
            {"criterion": f"Says thing {number}.", "points": one, "tags": ["axis:completeness"]}
            for number, one in enumerate(points)
        ],
        "canary": "made-by-hand",
    }
