"""R2E-Gym's rule by full test ids, and what goes wrong where names are cut out of a printed summary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.tasks.grading.answer import Status, read_answer
from stepwell.tasks.grading.expected import compare

EXPECTED: dict[str, Status] = {"a.py::test_x": "passed", "a.py::test_y": "failed", "b.py::test_z": "error"}


def test_every_listed_test_has_its_status() -> None:
    assert compare(EXPECTED, EXPECTED).agree


@given(st.sampled_from(sorted(EXPECTED)), st.sampled_from(["passed", "failed", "error", "skipped"]))
def test_any_other_status_is_a_difference_that_is_named(test: str, status: Status) -> None:
    compared = compare(EXPECTED, {**EXPECTED, test: status})
    assert compared.agree == (status == EXPECTED[test])
    assert compared.agree or f"{test} is {status}, not {EXPECTED[test]}" in compared.reason


def test_an_expected_failure_must_remain_one() -> None:
    assert compare(EXPECTED, dict.fromkeys(EXPECTED, "passed")).reason == (
        "2 differences: a.py::test_y is passed, not failed; b.py::test_z is passed, not error"
    )


def test_a_printed_summary_reports_nothing() -> None:
    """Hazard (a): a fake summary in what tests print."""
    printed = b"=== short test summary info ===\nPASSED a.py::test_x\nFAILED a.py::test_y\n=== 2 passed ===\n"
    assert read_answer(printed, "n", list(EXPECTED)).tests == {}


def test_tests_of_one_name_in_two_files_are_two_tests() -> None:
    """Hazard (b): the file is dropped from names."""
    seen: dict[str, Status] = {"a.py::test_x": "passed", "b.py::test_x": "failed"}
    assert not compare({"a.py::test_x": "passed", "b.py::test_x": "passed"}, seen).agree


def test_parameters_that_differ_after_a_dash_are_two_tests() -> None:
    """Hazard (c): parameters with ` - ` in them are cut."""
    seen: dict[str, Status] = {"a.py::test_x[1 - 2]": "passed", "a.py::test_x[1 - 3]": "failed"}
    assert compare(seen, dict(seen)).agree
    assert not compare(dict.fromkeys(seen, "passed"), seen).agree


def test_a_run_without_results_is_a_difference_and_a_task_without_expectations_an_error() -> None:
    """Hazard (d): no summary gives no names."""
    assert compare(EXPECTED, {}).reason.startswith("3 differences: a.py::test_x is missing, not passed")
    with pytest.raises(ValueError, match="no test is expected"):
        compare({}, {})


def test_as_many_tests_of_other_names_are_differences_and_no_key_error() -> None:
    """Hazard (e): sets of equal size with other members."""
    compared = compare({"a.py::test_x": "passed"}, {"a.py::test_other": "passed"})
    assert compared.reason == (
        "2 differences: a.py::test_x is missing, not passed; a.py::test_other is not among the expected tests"
    )
    assert not compare({"a.py::test_x": "passed"}, {"a.py::test_x": "passed", "a.py::test_new": "failed"}).agree
    assert compare(
        {"a.py::test_x": "passed"}, {"a.py::test_x": "passed", "a.py::test_new": "failed"}, strict=False
    ).agree


def test_expected_failures_do_not_drift_with_pytest() -> None:
    """Hazard (f): what is XFAIL or XPASS in one version is SKIPPED or PASSED in another, or not listed."""
    assert compare({"a.py::test_x": "passed"}, {"a.py::test_x": "xpassed"}).agree
    assert compare({"a.py::test_x": "skipped"}, {"a.py::test_x": "xfailed"}).agree
    assert not compare({"a.py::test_x": "failed"}, {"a.py::test_x": "xfailed"}).agree
    unlisted: dict[str, Status] = {"a.py::test_x": "passed", "a.py::test_s": "skipped", "a.py::test_f": "xfailed"}
    assert compare({"a.py::test_x": "passed"}, unlisted).agree
