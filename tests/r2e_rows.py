"""Rows of R2E-Gym's form, made up: the same keys, small contents, and texts in every secret place that can be found."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stepwell.tasks.r2e.images import image_names

FIXED = "def area(a, b):\n    return a * b  # GOLD-LINE\n"
BROKEN = "def area(a, b):\n    return a + b\n"
TESTS = {
    "test_1.py": """
from shapes import area

def test_area():
    assert area(2, 3) == 6  # HIDDEN-LINE

class TestShapes:
    def test_zero(self):
        assert area(0, 5) == 0

    def test_lost(self):
        assert area(1, 1) == 2
""",
    "test_2.py": """
import pytest

@pytest.fixture
def broken():
    raise RuntimeError("no fixture")

def test_fixture(broken):
    pass

@pytest.mark.parametrize("text", ["a - b", "c::d"])
def test_text(text):
    assert text

@pytest.mark.skip
def test_skipped():
    pass

@pytest.mark.xfail
def test_expected_to_fail():
    assert False
""",
}
EXPECTED = {
    "test_area": "PASSED",
    "TestShapes.test_zero": "PASSED",
    "TestShapes.test_lost": "FAILED",
    "test_fixture": "ERROR",
    "test_text[a": "PASSED",
    "test_text[c.d]": "PASSED",
}
ISSUE = "[ISSUE]\narea adds where it should multiply\n[/ISSUE]"
OWNERS = {"pillow": "python-pillow/Pillow", "numpy": "numpy/numpy", "tornado": "tornadoweb/tornado"}


def commit_of(number: int) -> str:
    """A made-up commit."""
    return hashlib.sha1(f"commit {number}".encode()).hexdigest()


def dataset_row(number: int = 0, repo: str = "pillow", **fields: Any) -> dict[str, Any]:
    """A row as in the dataset's parquet; `tests`, `expected` and `gold` are put in their places."""
    commit = commit_of(number)
    tests: Mapping[str, str] = fields.pop("tests", TESTS)
    diff = {
        "header": {"file": {"path": "shapes.py"}},
        "plus_file": {"path": "b/shapes.py"},
        "old_file_content": BROKEN,
        "new_file_content": FIXED,
    }
    values = {
        "repo_name": repo,
        "docker_image": f"namanjain12/{repo}_final:{commit}",
        "commit_hash": commit,
        "parsed_commit_content": json.dumps(
            {"file_diffs": [diff], "new_commit_hash": commit, "old_commit_hash": f"{commit}^"}
        ),
        "execution_result_content": json.dumps(
            {
                "new_commit_hash": commit,
                "test_file_names": list(tests),
                "test_file_codes": list(tests.values()),
                "new_commit_res_stdout": "SECRET-OUTPUT",
            }
        ),
        "modified_files": ["shapes.py"],
        "num_non_test_lines": 3 + number % 7,
        "prompt": "SECRET-PROMPT",
        "problem_statement": ISSUE,
        "expected_output_json": json.dumps(fields.pop("expected", EXPECTED)),
    }
    return values | fields


def benchmark_row(number: int = 0, repo: str = "pillow", **fields: Any) -> dict[str, Any]:
    """The same row as a line of the benchmark's JSONL, decoded."""
    row = dataset_row(number, repo, **fields)
    identity = {
        "instance_id": instance_id(number, repo),
        "base_commit": commit_of(number + 1_000_000),
        "repo": OWNERS[repo],
        "problem_statement": row["problem_statement"],
    }
    metadata = identity | {
        "dataset_name": "R2E-Gym/R2E-Gym-Subset",
        "split": "train",
        "hints_text": "",
        "version": "",
        "created_at": "",
        "instance_dict": json.dumps(row | identity),
    }
    return {
        "responses_create_params": {
            "input": [],
            "metadata": metadata,
            "model": "default",
            "temperature": 1.0,
            "top_p": 1.0,
        },
        "agent_ref": {"type": "responses_api_agents", "name": "swe_agents_train"},
    }


def instance_id(number: int = 0, repo: str = "pillow") -> str:
    """The id of a made-up row."""
    return f"{OWNERS[repo].replace('/', '__')}-{commit_of(number)}"


def secret_texts() -> dict[str, str]:
    """What no agent may see of a made-up row, by what it is, in pieces that would give it away."""
    lines = {line.strip() for code in [*TESTS.values(), FIXED] for line in code.splitlines()}
    telling = {
        f"line {line!r}": line for line in lines - {line.strip() for line in BROKEN.splitlines()} if len(line) > 8
    }
    return telling | {f"expected test {test!r}": test for test in EXPECTED} | {"output": "SECRET-OUTPUT"}


REPOS = ("pillow", "numpy", "tornado")


def write_rows(path: Path, rows: Sequence[object]) -> None:
    """A file of the benchmark's form."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_folder(folder: Path) -> None:
    """Puts a file of six rows into a folder, and their images by both naming rules and in both places."""
    write_rows(folder / "train.jsonl", [benchmark_row(number, REPOS[number % 3]) for number in range(6)])
    images = folder / "images"
    (images / "r2egym").mkdir(parents=True)
    for number in range(6):
        names = image_names(instance_id(number, REPOS[number % 3]))
        inner = images / "r2egym" if number < 2 else images
        (inner / names[number % 2]).write_bytes(b"SIF of %d" % number)


def r2e_recipe(path: Path, **sections: dict[str, Any]) -> dict[str, Any]:
    """A recipe on an imported set; sections are put over its own."""
    values: dict[str, Any] = {
        "run": {"max_steps": 1, "prompts_per_step": 2, "samples_per_prompt": 2},
        "policy": {"kind": "smollm2"},
        "tasks": {"source": "r2e", "path": str(path)},
        "agent": {"tools": "codeact", "max_turns": 4, "max_context_tokens": 256, "max_turn_tokens": 64},
        "optimiser": {"learning_rate": 1e-6},
        "validation": {"tasks": 1},
    }
    return {"name": "r2e"} | values | {name: values.get(name, {}) | keys for name, keys in sections.items()}
