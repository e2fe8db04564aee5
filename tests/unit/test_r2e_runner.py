"""The runner of hidden tests: it reads as Python 3.7, and old versions of pytest tell it the same."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import stepwell.tasks.r2e
from stepwell.tasks.r2e.rows import parse_dataset_row
from stepwell.tasks.r2e.secrets import secrets_of
from tests.r2e_rows import FIXED, TESTS, dataset_row

RUNNER = Path(stepwell.tasks.r2e.__file__).with_name("run_hidden.py").read_text()
OLDEST = (3, 7)
EXPECTED = secrets_of(parse_dataset_row(dataset_row(), "x")).expected_tests()


def answer(folder: Path, options: list[str], path: str = "") -> list[list[str]]:
    """What the runner says of the made-up task in a folder: fields of each line after the nonce."""
    (folder / "r2e_tests").mkdir()
    (folder / "shapes.py").write_text(FIXED)
    for name, code in TESTS.items():
        (folder / "r2e_tests" / name).write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUNNER],
        input="\n".join(["NONCE", "pytest", str(folder), "r2e_tests", *options]),
        env={"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert all(fields[0] == "NONCE" for fields in lines), done.stdout
    return [fields[1:] for fields in lines]


def found(lines: list[list[str]]) -> dict[str, str]:
    return dict(EXPECTED.found({node: status for status, node in lines[1:-1]}))  # type: ignore[misc]


def test_the_runner_reads_as_the_oldest_python_of_an_image() -> None:
    tree = ast.parse(RUNNER, feature_version=OLDEST)
    imported = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert imported == {"os", "sys"}


def test_it_tells_every_status_and_says_when_it_begins_and_ends(tmp_path: Path) -> None:
    lines = answer(tmp_path, [])
    assert lines[0] == ["start", pytest.__version__]
    assert lines[-1] == ["end"]
    assert found(lines) == EXPECTED.expected
    assert ["skipped", "r2e_tests/test_2.py::test_skipped"] in lines
    assert ["xfailed", "r2e_tests/test_2.py::test_expected_to_fail"] in lines


def test_options_that_pytest_does_not_know_are_told(tmp_path: Path) -> None:
    assert answer(tmp_path, ["--no-such-option"])[-1] == ["end", "pytest's exit status 4"]


def test_a_file_that_cannot_be_collected_is_an_error_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("collect_ignore = ['r2e_tests/test_2.py']\n")
    (tmp_path / "r2e_tests").mkdir()
    (tmp_path / "r2e_tests" / "test_3.py").write_text("import nothing_of_this_name\n")
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=f"NONCE\npytest\n{tmp_path}\nr2e_tests",
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "NONCE\terror\tr2e_tests/test_3.py\n" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "options"),
    [("4.6.11", ["--assert=plain"]), ("5.4.3", ["--assert=plain"]), ("6.2.5", []), ("7.4.4", []), ("8.3.5", [])],
)
def test_old_versions_of_pytest_tell_the_same(tmp_path: Path, version: str, options: list[str]) -> None:
    """Those before 6.2 cannot rewrite assertions on Python 3.11."""
    library, work = tmp_path / "library", tmp_path / "work"
    work.mkdir()
    install = [sys.executable, "-m", "pip", "install", "-q", "--target", str(library), f"pytest=={version}"]
    subprocess.run(install, check=True, timeout=240)
    lines = answer(work, options, str(library))
    assert lines[0] == ["start", version]
    assert found(lines) == EXPECTED.expected
