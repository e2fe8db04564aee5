"""Full test ids for the dataset's names, and the image's own command."""

import pytest

from stepwell.tasks.r2e.entrypoint import Entrypoint, UnknownEntrypoint, parse_entrypoint
from stepwell.tasks.r2e.expected import Ambiguous, Status, expected_tests, id_of_node
from tests.r2e_rows import EXPECTED, TESTS

ONE, TWO = "r2e_tests/test_1.py", "r2e_tests/test_2.py"


def test_names_become_full_ids() -> None:
    made = expected_tests(TESTS, EXPECTED)
    assert made.kind == "pytest"
    assert made.ambiguous == {}
    assert made.expected == {
        f"{ONE}::test_area": "passed",
        f"{ONE}::TestShapes::test_zero": "passed",
        f"{ONE}::TestShapes::test_lost": "failed",
        f"{TWO}::test_fixture": "error",
        f"{TWO}::test_text[a": "passed",
        f"{TWO}::test_text[c.d]": "passed",
    }


def test_what_runs_is_found_under_the_same_ids() -> None:
    reported: dict[str, Status] = {
        f"{ONE}::test_area": "passed",
        f"{ONE}::TestShapes::test_zero": "passed",
        f"{ONE}::TestShapes::test_lost": "failed",
        f"{TWO}::test_fixture": "error",
        f"{TWO}::test_text[a - b]": "passed",
        f"{TWO}::test_text[c::d]": "passed",
        f"{TWO}::test_skipped": "skipped",
        f"{TWO}::test_expected_to_fail": "xfailed",
    }
    made = expected_tests(TESTS, EXPECTED)
    assert made.found(reported) == made.expected


def test_a_test_that_was_not_expected_is_found_too() -> None:
    made = expected_tests(TESTS, EXPECTED)
    assert made.found({f"{ONE}::test_new": "passed"}) == {f"{ONE}::test_new": "passed"}


SAME = {"test_1.py": "def test_same(): pass", "test_2.py": "def test_same(): pass", "conftest.py": "test_same = 1"}


def test_a_name_in_two_files_is_ambiguous_and_names_both() -> None:
    made = expected_tests(SAME, {"test_same": "FAILED"})
    joint = f"{ONE}|{TWO}::test_same"
    assert made.expected == {joint: "failed"}
    assert made.ambiguous == {joint: Ambiguous("test_same", (ONE, TWO))}


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ("passed", "failed", "failed"),
        ("failed", "passed", "failed"),
        ("passed", "error", "error"),
        ("error", "failed", "failed"),
        ("passed", "skipped", "passed"),
        ("passed", "passed", "passed"),
    ],
)
def test_what_an_ambiguous_name_gives_is_merged_as_the_summary_would(
    first: Status, second: Status, merged: str
) -> None:
    found = expected_tests(SAME, {"test_same": "FAILED"}).found(
        {f"{ONE}::test_same": first, f"{TWO}::test_same": second}
    )
    assert list(found.values()) == [merged]


def test_a_method_is_looked_for_in_base_classes_of_its_file() -> None:
    base = "class Base:\n    def test_it(self): pass\n"
    tests = {"test_1.py": base, "test_2.py": base + "class TestIt(Base):\n    pass\n"}
    assert list(expected_tests(tests, {"TestIt.test_it": "PASSED"}).expected) == [f"{TWO}::TestIt::test_it"]


def test_a_method_from_elsewhere_is_where_its_class_is() -> None:
    tests = {"test_1.py": "x = 1\n", "test_2.py": "from other import Base\nclass TestIt(Base):\n    pass\n"}
    assert list(expected_tests(tests, {"TestIt.test_it": "PASSED"}).expected) == [f"{TWO}::TestIt::test_it"]


@pytest.mark.parametrize(
    "code",
    [
        "if True:\n    def test_it(): pass\n",
        "try:\n    pass\nexcept OSError:\n    def test_it(): pass\n",
        "test_it = 1\n",
        "async def test_it(): pass\n",
        "with open('x'):\n    def test_it(): pass\n",
    ],
)
def test_a_test_is_found_wherever_its_file_defines_it(code: str) -> None:
    tests = {"test_1.py": code, "test_2.py": "def test_other(): pass"}
    assert list(expected_tests(tests, {"test_it": "PASSED"}).expected) == [f"{ONE}::test_it"]


def test_a_name_that_no_file_has_may_be_in_any() -> None:
    made = expected_tests(TESTS, {"test_made_up": "PASSED"})
    assert made.ambiguous[f"{ONE}|{TWO}::test_made_up"].files == (ONE, TWO)


def test_tests_that_this_python_cannot_read_are_placed_by_there_being_one_file() -> None:
    assert list(expected_tests({"test_1.py": "print 1\n"}, {"test_a": "PASSED"}).expected) == [f"{ONE}::test_a"]


def test_a_file_that_cannot_be_collected_has_an_id_too() -> None:
    made = expected_tests({"test_1.py": "import nothing\n"}, {"": "ERROR"})
    assert made.expected == {ONE: "error"}
    assert made.found({ONE: "error"}) == made.expected


def test_tests_for_unittest_are_told_by_their_runner() -> None:
    tests = {"test_1.py": "class T:\n    def test_a(self): pass\n", "tornado_unittest_runner.py": "x = 1\n"}
    made = expected_tests(tests, {"T.test_a": "PASSED", "_FailedTest.r2e_tests.test_2": "ERROR"})
    assert made.kind == "unittest"
    assert made.expected == {f"{ONE}::T::test_a": "passed", "unittest.loader::_FailedTest::r2e_tests::test_2": "error"}
    assert made.found({"unittest.loader::_FailedTest::r2e_tests.test_2": "error"}) == {
        "unittest.loader::_FailedTest::r2e_tests::test_2": "error"
    }


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        ("r2e_tests/test_1.py::A::test_b", "r2e_tests/test_1.py::A::test_b"),
        ("r2e_tests/test_1.py::A::test_b[x.y-1]", "r2e_tests/test_1.py::A::test_b[x.y-1]"),
        ("r2e_tests/test_1.py::test_b[a::b]", "r2e_tests/test_1.py::test_b[a.b]"),
        ("r2e_tests/test_1.py::test_b[a - b]", "r2e_tests/test_1.py::test_b[a"),
        ("r2e_tests/test_1.py", "r2e_tests/test_1.py"),
    ],
)
def test_a_node_id_is_kept_but_for_what_the_dataset_lost(node: str, wanted: str) -> None:
    assert id_of_node(node) == wanted


PYTEST = (
    "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' .venv/bin/python -W ignore -m pytest -rA r2e_tests\n"
)


def test_the_images_command_is_read() -> None:
    made = parse_entrypoint(PYTEST)
    warnings = {"PYTHONWARNINGS": "ignore::UserWarning,ignore::SyntaxWarning"}
    assert made == Entrypoint("pytest", ".venv/bin/python", (), ("-W", "ignore"), (), warnings)


def test_options_and_what_stands_before_the_interpreter_are_kept() -> None:
    script = "#!/bin/bash\n\nQT_QPA_PLATFORM=minimal xvfb-run --auto-servernum .venv/bin/python -m pytest"
    script += " -rA -o 'addopts=' r2e_tests/"
    made = parse_entrypoint(script)
    assert (made.before, made.pytest_options) == (("xvfb-run", "--auto-servernum"), ("-o", "addopts="))
    assert (made.python_options, made.environment) == ((), {"QT_QPA_PLATFORM": "minimal"})


@pytest.mark.parametrize("runner", ["tornado_unittest_runner.py", "unittest_custom_runner.py"])
def test_the_runners_of_unittest_are_known(runner: str) -> None:
    assert parse_entrypoint(f".venv/bin/python -W ignore r2e_tests/{runner}").kind == "unittest"


@pytest.mark.parametrize("script", ["", "true", "python x.py", "python -m nose", "a\nb", "python 'x"])
def test_another_command_is_refused(script: str) -> None:
    with pytest.raises(UnknownEntrypoint, match=r"run_tests\.sh"):
        parse_entrypoint(script)
