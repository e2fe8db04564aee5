"""The submission file: what is read, and how what is wrong is named."""

from pathlib import Path

import pytest
import tomli_w

from stepwell.mlperf.submission import SYSTEM_COUNTS, SYSTEM_FIELDS, SubmissionError, load_submission, load_system

MLPERF = {
    "submission_org": "Example",
    "submission_platform": "one machine",
    "submission_division": "open",
    "submission_status": "research",
    "cache_clear": True,
    "lowest_numerical_precision_in_comm": "fp32",
}
SYSTEM = (
    dict.fromkeys(SYSTEM_FIELDS, "none")
    | dict.fromkeys(SYSTEM_COUNTS, "1")
    | {"status": "Preview", "system_name": "one"}
)


def document(folder: Path, **tables: dict[str, object]) -> Path:
    """A submission file."""
    path = folder / "submission.toml"
    path.write_text(tomli_w.dumps(tables), encoding="utf-8")
    return path


def without(table: dict[str, object], key: str) -> dict[str, object]:
    """A table that lacks a key."""
    return {name: value for name, value in table.items() if name != key}


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    path = document(tmp_path, mlperf={**MLPERF, "tensor_parallelism": 4}, system=SYSTEM)
    submission = load_submission(path)
    assert (submission.submission_org, submission.tensor_parallelism) == ("Example", 4)
    system = load_system(path, submission)
    assert (system["submitter"], system["division"], system["cooling"]) == ("Example", "open", "none")


@pytest.mark.parametrize("key", MLPERF)
def test_a_missing_key_is_named_with_what_is_allowed(key: str, tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=rf"\[mlperf\] has 1 error\(s\)\n  {key}: missing\. .*\.$"):
        load_submission(document(tmp_path, mlperf=without(MLPERF, key)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"submission_division": "half"}, "submission_division = 'half': .* `closed` or `open`"),
        ({"submission_org": "a/b"}, "submission_org = 'a/b': .* a name without a slash"),
        ({"cache_clear": False}, "cache_clear = False: .* vouches for"),
        ({"submision_org": "x"}, "submision_org: unknown key; did you mean 'submission_org'"),
        ({"expert_parallelism": 0}, "expert_parallelism = 0: .* a whole number from 1"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(changed: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=said):
        load_submission(document(tmp_path, mlperf={**MLPERF, **changed}))


@pytest.mark.parametrize(
    ("system", "said"),
    [
        (without(SYSTEM, "cooling"), "cooling: missing; a string"),
        ({**SYSTEM, "coolin": "air"}, "coolin: unknown field; did you mean 'cooling'"),
        ({**SYSTEM, "number_of_nodes": 1}, "number_of_nodes = 1: a string is wanted"),
        ({**SYSTEM, "accelerators_per_node": ""}, "accelerators_per_node = '': a whole number is wanted"),
        ({**SYSTEM, "status": "onprem"}, "status = 'onprem': allowed are 'Available on-premise'"),
        ({**SYSTEM, "system_name": "../one"}, "system_name = '../one': it names files"),
    ],
)
def test_a_system_that_the_checker_would_refuse_is_refused(
    system: dict[str, object], said: str, tmp_path: Path
) -> None:
    path = document(tmp_path, mlperf=MLPERF, system=system)
    with pytest.raises(SubmissionError, match=said):
        load_system(path, load_submission(path))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="No such file"):
        load_submission(tmp_path / "nothing.toml")
    with pytest.raises(SubmissionError, match=r"no table \[mlperf\]"):
        load_submission(document(tmp_path, system=SYSTEM))
    (tmp_path / "broken.toml").write_text("[mlperf", encoding="utf-8")
    with pytest.raises(SubmissionError, match="is no TOML"):
        load_submission(tmp_path / "broken.toml")
