"""Rows of R2E-Gym: both forms give the same; what is not of the form is refused by key, value and what is allowed."""

import json
from typing import Any

import pytest

from stepwell.tasks.r2e.rows import BadRow, parse_benchmark_row, parse_dataset_row, repository_of
from tests.r2e_rows import EXPECTED, ISSUE, TESTS, benchmark_row, commit_of, dataset_row, instance_id


def test_a_benchmark_row_is_parsed() -> None:
    row = parse_benchmark_row(benchmark_row(3), "rows.jsonl:1")
    assert (row.instance_id, row.repo, row.commit) == (instance_id(3), "python-pillow/Pillow", commit_of(3))
    assert (row.problem_statement, row.tests, row.expected) == (ISSUE, TESTS, EXPECTED)
    assert row.base_commit == commit_of(1_000_003)
    assert row.non_test_lines == 6


def test_a_dataset_row_gives_the_same_task_without_its_parent() -> None:
    of_dataset = parse_dataset_row(dataset_row(3), "rows.parquet, row 1")
    of_benchmark = parse_benchmark_row(benchmark_row(3), "rows.jsonl:1")
    assert of_dataset.base_commit is None
    assert of_benchmark == of_dataset.__class__(**vars(of_dataset) | {"base_commit": of_benchmark.base_commit})


def changed(**metadata: Any) -> dict[str, Any]:
    row = benchmark_row()
    row["responses_create_params"]["metadata"].update(metadata)
    return row


def without(key: str) -> dict[str, Any]:
    row = benchmark_row()
    del row["responses_create_params"]["metadata"][key]
    return row


def within(**columns: Any) -> dict[str, Any]:
    """A row whose columns differ, in the string that holds them."""
    row = benchmark_row()
    metadata = row["responses_create_params"]["metadata"]
    metadata["instance_dict"] = json.dumps(json.loads(metadata["instance_dict"]) | columns)
    return row


METADATA = "row.responses_create_params.metadata"
INSTANCE = f"{METADATA}.instance_dict"
REFUSED: dict[str, tuple[object, str]] = {
    "no object": ([1], "x.jsonl:7: row is [1]; allowed: an object"),
    "an unknown key": (benchmark_row() | {"agent": 1}, "row.agent is 1; allowed: the keys agent_ref, resp"),
    "another agent": (
        benchmark_row() | {"agent_ref": {"name": "swe_agent"}},
        "row.agent_ref.name is 'swe_agent'; allowed: swe_agents_train or swe_agents_val",
    ),
    "an unknown key of the metadata": (
        changed(hint_text=""),
        f"{METADATA}.hint_text is ''; allowed: the keys base_com",
    ),
    "which names the nearest": (changed(hint_text=""), "did you mean 'hints_text'?"),
    "a key of the metadata missing": (without("version"), f"{METADATA}.version is 'missing'; allowed: a value"),
    "another dataset": (changed(dataset_name="SWE-bench"), f"{METADATA}.dataset_name is 'SWE-bench'; allowed: a name"),
    "no JSON inside": (changed(instance_dict="{"), f"{INSTANCE} is '{{'; allowed: JSON"),
    "a list inside": (changed(instance_dict="[]"), f"{INSTANCE} is []; allowed: an object"),
    "two ids": (changed(instance_id="a__b-c"), f"{INSTANCE}.instance_id is 'python-pillow__Pillow-"),
    "two issues": (changed(problem_statement="other"), f"{INSTANCE}.problem_statement is '[ISSUE]"),
    "an unknown repository": (within(repo_name="pilow"), f"{INSTANCE}.repo_name is 'pilow'; allowed: aiohttp"),
    "no commit": (within(commit_hash="HEAD"), f"{INSTANCE}.commit_hash is 'HEAD'; allowed: 40 hex"),
    "another image": (
        within(docker_image="x/pillow:1"),
        f"{INSTANCE}.docker_image is 'x/pillow:1'; allowed: a name that",
    ),
    "another solution": (
        within(parsed_commit_content='{"new_commit_hash": "x"}'),
        f"{INSTANCE}.parsed_commit_content.new_commit_hash is 'x'; allowed: '{commit_of(0)}'",
    ),
    "no number of lines": (within(num_non_test_lines=-1), f"{INSTANCE}.num_non_test_lines is -1; allowed: a whole"),
    "no expected test": (
        within(expected_output_json="{}"),
        f"{INSTANCE}.expected_output_json is {{}}; allowed: at least",
    ),
    "an unknown status": (
        within(expected_output_json='{"test_a": "XFAIL"}'),
        f"{INSTANCE}.expected_output_json.test_a is 'XFAIL'; allowed: PASSED, FAILED, ERROR",
    ),
    "no issue": (changed(problem_statement=" "), "problem_statement"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_row_not_of_the_form_is_refused(name: str) -> None:
    row, said = REFUSED[name]
    with pytest.raises(BadRow) as caught:
        parse_benchmark_row(row, "x.jsonl:7")
    assert said in str(caught.value)
    assert str(caught.value).startswith("x.jsonl:7: ")


@pytest.mark.parametrize("names", [["../test_1.py", "b.py"], ["/etc/passwd", "b.py"], ["a.py", "a.py"], ["a.py"]])
def test_test_files_with_other_names_are_refused(names: list[str]) -> None:
    execution = {"new_commit_hash": commit_of(0), "test_file_names": names, "test_file_codes": ["", ""]}
    with pytest.raises(BadRow, match="test_file_names"):
        parse_dataset_row(dataset_row(execution_result_content=json.dumps(execution)), "x")


def test_a_long_value_is_not_shown_whole() -> None:
    with pytest.raises(BadRow) as caught:
        parse_dataset_row(dataset_row(repo_name="x" * 10_000), "x")
    assert len(str(caught.value)) < 400


def test_a_column_that_is_missing_is_named() -> None:
    row = dataset_row()
    del row["docker_image"]
    with pytest.raises(BadRow, match=r"row.docker_image is 'missing'; allowed: a value"):
        parse_dataset_row(row, "x")


def test_what_is_no_instance_id_is_refused() -> None:
    with pytest.raises(ValueError, match="no instance id"):
        repository_of("numpy-abc")
