"""Rows of R2E-Gym, as the dataset has them and as the benchmark wraps them. Pure.

The dataset (`R2E-Gym/R2E-Gym-Subset`) has one row a commit. The benchmark's JSONL wraps each in a request whose
metadata hold it as a string, `instance_dict`. A row carries everything: the issue that the agent is told, and beside it
the gold patch, the hidden tests and what they must give, which no sandbox of an agent may see.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from stepwell.nearest_names import did_you_mean
from stepwell.sandbox.tree import check_relative_path

ExpectedStatus = Literal["PASSED", "FAILED", "ERROR"]
"""What the tests gave with the commit; one that failed there must fail again."""

REPOSITORIES: Mapping[str, str] = {
    "aiohttp": "aio-libs/aiohttp",
    "coveragepy": "nedbat/coveragepy",
    "datalad": "datalad/datalad",
    "numpy": "numpy/numpy",
    "orange3": "biolab/orange3",
    "pandas": "pandas-dev/pandas",
    "pillow": "python-pillow/Pillow",
    "pyramid": "pylons/pyramid",
    "scrapy": "scrapy/scrapy",
    "tornado": "tornadoweb/tornado",
}
"""The dataset's names of its repositories, and their owners' names on which instance ids are built."""

METADATA_KEYS = frozenset(
    {"instance_id", "base_commit", "dataset_name", "split", "problem_statement"}
    | {"hints_text", "version", "created_at", "instance_dict", "repo"}
)
COLUMNS = (
    *("repo_name", "docker_image", "commit_hash", "parsed_commit_content", "execution_result_content"),
    *("num_non_test_lines", "problem_statement", "expected_output_json"),
)
"""Columns of the dataset that are read; there are six more."""
AGENTS = ("swe_agents_train", "swe_agents_val")
DATASET = "R2E-Gym"
"""Stands in the name of every dataset of this form."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_INSTANCE = re.compile(r"([A-Za-z0-9_.-]+)__([A-Za-z0-9_.-]+)-([0-9a-f]{40})")
_SHOWN = 80


class BadRow(ValueError):
    """A row that is not of the form: where, which key, what was found and what is allowed."""

    def __init__(self, place: str, key: str, found: object, allowed: str) -> None:
        shown = repr(found)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}… ({len(shown)} characters)"
        super().__init__(f"{place}: {key} is {shown}; allowed: {allowed}")


@dataclass(frozen=True)
class R2ERow:
    """One row, parsed."""

    instance_id: str
    """`<owner>__<repository>-<commit>`."""
    repo: str
    """`<owner>/<repository>`."""
    commit: str
    """The commit that solves the task, 40 hex digits."""
    base_commit: str | None
    """Its parent, where the row tells it."""
    docker_image: str
    problem_statement: str
    non_test_lines: int
    """Changed lines of the gold patch outside of tests."""
    parsed_commit: str
    """The gold patch: JSON with the old and new content of each file."""
    tests: dict[str, str]
    """Hidden test files by name, with what the image's builder put beside them."""
    expected: dict[str, ExpectedStatus]
    """By the dataset's name of a test: its node id without the file, joined by dots."""


def parse_benchmark_row(row: object, place: str) -> R2ERow:
    """A row of the benchmark's JSONL.

    Args:
        row: A line, decoded.
        place: Names it in errors, for example `train.jsonl:17`.

    Raises:
        BadRow: it is not of the form.
    """
    top = _Table(row, place, "row")
    top.keys({"responses_create_params", "agent_ref"}, optional={"agent_ref"})
    if "agent_ref" in top.values:
        agent = top.table("agent_ref")
        if agent.text("name") not in AGENTS:
            raise agent.bad("name", " or ".join(AGENTS))
    params = top.table("responses_create_params")
    if params.get("input") != []:
        raise params.bad("input", "[]: the issue stands in metadata.problem_statement")
    metadata = params.table("metadata")
    metadata.keys(METADATA_KEYS)
    if DATASET not in metadata.text("dataset_name"):
        raise metadata.bad("dataset_name", f"a name with {DATASET!r} in it")
    instance = metadata.json_table("instance_dict")
    for key in ("instance_id", "base_commit", "repo", "problem_statement"):
        if instance.get(key) != metadata.get(key):
            raise instance.bad(key, f"what metadata.{key} is, {metadata.get(key)!r}")
    parsed = _parse_columns(instance)
    for key, value in (("instance_id", parsed.instance_id), ("repo", parsed.repo)):
        if metadata.get(key) != value:
            raise metadata.bad(key, f"{value!r}, by instance_dict.repo_name and commit_hash")
    return parsed


def parse_dataset_row(columns: Mapping[str, object], place: str) -> R2ERow:
    """A row of the dataset's parquet. Raises BadRow as `parse_benchmark_row`."""
    return _parse_columns(_Table(dict(columns), place, "row"))


def repository_of(instance_id: str) -> tuple[str, str]:
    """Repository (without its owner) and commit of an instance id.

    Raises:
        ValueError: it is none.
    """
    match = _INSTANCE.fullmatch(instance_id)
    if match is None:
        raise ValueError(f"{instance_id!r} is no instance id: wanted <owner>__<repository>-<commit of 40 hex digits>")
    return match[2], match[3]


def _parse_columns(columns: "_Table") -> R2ERow:
    for name in COLUMNS:
        if name not in columns.values:
            raise columns.bad(name, f"a value: the columns are {', '.join(COLUMNS)}")
    repo_name, commit = columns.text("repo_name"), columns.text("commit_hash")
    if repo_name not in REPOSITORIES:
        meant = did_you_mean(repo_name, REPOSITORIES)
        raise columns.bad("repo_name", ", ".join(REPOSITORIES) + (f"; {meant}" if meant else ""))
    if not _COMMIT.fullmatch(commit):
        raise columns.bad("commit_hash", "40 hexadecimal digits in lower case")
    image = columns.text("docker_image")
    if not image.endswith(f"/{repo_name}_final:{commit}"):
        raise columns.bad("docker_image", f"a name that ends in /{repo_name}_final:{commit}")
    solution = columns.json_table("parsed_commit_content")
    execution = columns.json_table("execution_result_content")
    for table in (solution, execution):
        if table.get("new_commit_hash") != commit:
            raise table.bad("new_commit_hash", f"{commit!r}, as commit_hash")
    lines = columns.get("num_non_test_lines")
    if not isinstance(lines, int) or isinstance(lines, bool) or lines < 0:
        raise columns.bad("num_non_test_lines", "a whole number, 0 or more")
    base = columns.get("base_commit")
    owner, _, name = REPOSITORIES[repo_name].partition("/")
    return R2ERow(
        instance_id=f"{owner}__{name}-{commit}",
        repo=REPOSITORIES[repo_name],
        commit=commit,
        base_commit=base if isinstance(base, str) and _COMMIT.fullmatch(base) else None,
        docker_image=image,
        problem_statement=columns.text("problem_statement"),
        non_test_lines=lines,
        parsed_commit=columns.text("parsed_commit_content"),
        tests=_tests_of(execution),
        expected=_expected_of(columns.json_table("expected_output_json")),
    )


def _tests_of(execution: "_Table") -> dict[str, str]:
    names, codes = execution.texts("test_file_names"), execution.texts("test_file_codes")
    if not names or len(names) != len(codes) or len(set(names)) != len(names):
        raise execution.bad("test_file_names", f"names that differ, as many as test_file_codes ({len(codes)})")
    for name in names:
        try:
            check_relative_path(name)
        except ValueError:
            raise execution.bad("test_file_names", f"file names; {name!r} is none") from None
    return dict(zip(names, codes, strict=True))


def _expected_of(table: "_Table") -> dict[str, ExpectedStatus]:
    expected: dict[str, ExpectedStatus] = {}
    for test, status in table.values.items():
        for allowed in get_args(ExpectedStatus):
            if status == allowed:
                expected[test] = allowed
        if test not in expected:
            raise table.bad(test, ", ".join(get_args(ExpectedStatus)))
    if not expected:
        raise BadRow(table.place, table.name, table.values, "at least one test")
    return expected


class _Table:
    """A JSON object of a row, whose values are read by type."""

    def __init__(self, value: object, place: str, name: str) -> None:
        if not isinstance(value, dict):
            raise BadRow(place, name, value, "an object")
        self.values: dict[str, object] = {str(key): inner for key, inner in value.items()}
        self.place, self.name = place, name

    def bad(self, key: str, allowed: str) -> BadRow:
        return BadRow(self.place, f"{self.name}.{key}", self.values.get(key, "missing"), allowed)

    def keys(self, allowed: Collection[str], optional: Collection[str] = ()) -> None:
        """Raises BadRow if a key is unknown, or one that is not optional is missing."""
        for key in self.values:
            if key not in allowed:
                meant = did_you_mean(key, allowed)
                raise self.bad(key, f"the keys {', '.join(sorted(allowed))}" + (f"; {meant}" if meant else ""))
        for key in sorted(allowed):
            if key not in self.values and key not in optional:
                raise self.bad(key, "a value: it is one of the keys that every row has")

    def get(self, key: str) -> object:
        return self.values.get(key)

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.bad(key, "a string with text in it")
        return value

    def texts(self, key: str) -> list[str]:
        value = self.values.get(key)
        texts = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
        if not isinstance(value, list) or len(texts) != len(value):
            raise self.bad(key, "a list of strings")
        return texts

    def table(self, key: str) -> "_Table":
        return _Table(self.values.get(key, "missing"), self.place, f"{self.name}.{key}")

    def json_table(self, key: str) -> "_Table":
        text = self.text(key)
        try:
            value = json.loads(text)
        except ValueError as error:
            raise self.bad(key, f"JSON ({error})") from None
        return _Table(value, self.place, f"{self.name}.{key}")
