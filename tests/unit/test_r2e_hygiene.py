"""What is hidden of an R2E image, on a tree of folders laid out like one."""

import subprocess
from pathlib import Path

import pytest

from stepwell.tasks.r2e.hygiene import hygiene
from tests.r2e_rows import BROKEN, FIXED, TESTS

SETTINGS = ["-c", "user.name=a", "-c", "user.email=a", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *SETTINGS, "-C", str(folder), *arguments], capture_output=True, check=True)
    return done.stdout.decode(errors="replace").strip()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository at the parent of its solution, with the tests beside it and linked into it."""
    repository = tmp_path / "testbed"
    (tmp_path / "root" / "r2e_tests").mkdir(parents=True)
    (tmp_path / "root" / "r2e_tests" / "test_1.py").write_text(TESTS["test_1.py"])
    (repository / "docs").mkdir(parents=True)
    (repository / "shapes.py").write_text(BROKEN)
    (repository / "docs" / "run_tests.sh").write_text("make check\n")
    git(repository.parent, "init", "-q", str(repository))
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "before")
    git(repository, "tag", "v1.2")
    (repository / "shapes.py").write_text(FIXED)
    git(repository, "commit", "-qam", "the solution")
    git(repository, "branch", "future")
    git(repository, "reset", "-q", "--hard", "v1.2")
    (repository / "r2e_tests").symlink_to("../root/r2e_tests")
    (repository / "run_tests.sh").write_text(".venv/bin/python -m pytest -rA r2e_tests\n")
    (repository / "parsed_commit.json").write_text(FIXED)
    (repository / ".venv" / "lib").mkdir(parents=True)
    (repository / ".venv" / "lib" / "package.py").write_text("x = 1\n")
    return repository


def clean(work: Path) -> None:
    for command in hygiene(str(work)).commands:
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def test_tests_links_and_scripts_go_and_the_rest_stays(work: Path) -> None:
    clean(work)
    left = {str(path.relative_to(work)) for path in work.rglob("*") if ".git" not in path.parts and not path.is_dir()}
    assert left == {"shapes.py", "docs/run_tests.sh", ".venv/lib/package.py"}
    assert (work / "shapes.py").read_text() == BROKEN
    assert not (work / "r2e_tests").is_symlink()
    assert (work.parent / "root" / "r2e_tests" / "test_1.py").is_file()


def test_the_history_holds_the_tree_as_it_is_and_nothing_else(work: Path) -> None:
    future = git(work, "rev-parse", "future")
    clean(work)
    assert git(work, "log", "--all", "--format=%s") == "The repository as the task begins"
    assert git(work, "describe", "--tags") == "v1.2"
    assert git(work, "status", "--porcelain") == ""
    objects = git(work, "cat-file", "--batch-check", "--batch-all-objects")
    assert future not in objects
    assert "GOLD-LINE" not in git(work, "cat-file", "--batch-all-objects", "--batch")
    assert ".venv" not in git(work, "ls-files")


def test_two_sandboxes_get_the_same_commit(work: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["cp", "-a", str(work), str(other)], check=True)
    clean(work)
    clean(other)
    assert git(work, "rev-parse", "HEAD") == git(other, "rev-parse", "HEAD")


def test_a_submodule_becomes_plain_files(work: Path) -> None:
    (work / "vendored").mkdir()
    (work / "vendored" / ".git").write_text("gitdir: ../.git/modules/vendored\n")
    (work / "vendored" / "code.c").write_text("int x;\n")
    clean(work)
    assert "vendored/code.c" in git(work, "ls-files")
    assert not (work / "vendored" / ".git").exists()


def test_a_folder_without_a_repository_gets_none(work: Path) -> None:
    subprocess.run(["rm", "-rf", str(work / ".git")], check=True)
    clean(work)
    assert not (work / ".git").exists()


def test_what_lies_outside_the_repository_is_named_to_be_hidden() -> None:
    made = hygiene("/testbed")
    assert {"/r2e_tests", "/root/r2e_tests", "/root/dataset"} <= set(made.hidden)
    assert {"/run_tests.sh", "/root/run_tests.sh"} <= set(made.hidden)
    assert all(path.startswith("/") and not path.startswith("/testbed") for path in made.hidden)


def test_what_pytest_kept_of_the_builders_runs_goes(work: Path) -> None:
    cache = work / "docs" / ".pytest_cache" / "v" / "cache"
    cache.mkdir(parents=True)
    (cache / "lastfailed").write_text('{"r2e_tests/test_1.py::test_area": true}')
    clean(work)
    assert not (work / "docs" / ".pytest_cache").exists()
