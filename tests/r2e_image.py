"""An image laid out like those of R2E-Gym, of a small root: a repository with its future, an environment, the tests.

Everything that the field has found to leak is in it: the tests in both places and linked into the repository, what runs
them, what the builder wrote, pytest's memory of the builder's runs, the benchmark's row, and the solution as a branch,
in the reflog, in a stash and as a loose object.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from stepwell.tasks.r2e.importing import ImportRequest, import_r2e
from stepwell.tasks.r2e.secrets import R2ESplit
from tests.r2e_rows import BROKEN, EXPECTED, FIXED, REPOS, TESTS, benchmark_row, dataset_row, instance_id, write_rows
from tests.small_image import make_sif

RUN_TESTS = "PYTHONWARNINGS='ignore::UserWarning' .venv/bin/python -W ignore -m pytest -rA r2e_tests\n"
WORK_FILES = {"shapes.py": BROKEN, "setup.cfg": "[tool:pytest]\nxfail_strict = false\n", "docs/notes.txt": "notes\n"}
"""What an agent finds in the repository, but for the environment."""
_SETTINGS = ("user.name=a", "user.email=a", "init.defaultBranch=main", "commit.gpgsign=false", "gc.auto=0")


def make_r2e_sif(small_root: Path, folder: Path) -> Path:
    """Builds the image in a folder; its path."""
    root = folder / "r2e-root"
    make_r2e_root(small_root, root)
    make_sif(root, folder / "r2e.sif")
    shutil.rmtree(root)
    return folder / "r2e.sif"


def make_r2e_root(small_root: Path, root: Path) -> None:
    """Its unpacked root, which shares the files of the small one."""
    shutil.copytree(small_root, root, symlinks=True, copy_function=os.link)
    _make_repository(root / "testbed")
    for place in (root, root / "root"):
        (place / "r2e_tests").mkdir(parents=True)
        for name, code in TESTS.items():
            (place / "r2e_tests" / name).write_text(code)
        (place / "run_tests.sh").write_text(RUN_TESTS)
    (root / "testbed" / "r2e_tests").symlink_to("/root/r2e_tests")
    (root / "root" / "dataset").mkdir()
    (root / "root" / "dataset" / "data.jsonl").write_text(json.dumps(benchmark_row()))


def make_r2e_set(sif: Path, folder: Path) -> Path:
    """A set of two training tasks and one of validation, each with an image of its own name; its path."""
    images = folder / "images"
    (images / "r2egym").mkdir(parents=True)
    rows = [benchmark_row(number, repo) for number, repo in enumerate(REPOS)]
    for number, repo in enumerate(REPOS):
        os.link(sif, images / "r2egym" / f"{instance_id(number, repo)}.sif")
    splits: tuple[tuple[R2ESplit, list[object]], ...] = (("train", rows[:2]), ("validation", rows[2:]))
    for split, chosen in splits:
        write_rows(folder / f"{split}.jsonl", chosen)
        report = import_r2e(ImportRequest((folder / f"{split}.jsonl",), images, split, folder / "set"))
        assert not report.refused, report
    return folder / "set"


def secret_needles() -> list[bytes]:
    """What of the image no agent may see, in pieces that would give it away."""
    lines = {line.strip() for code in (*TESTS.values(), FIXED) for line in code.splitlines()}
    lines -= {line.strip() for line in BROKEN.splitlines()}
    telling = [line for line in lines if len(line) > 8]
    return [text.encode() for text in (*telling, *EXPECTED, "SECRET-OUTPUT", "-rA r2e_tests")]


def _make_repository(work: Path) -> None:
    """At the parent of the solution, which comes after it."""
    for path, text in WORK_FILES.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(text)
    _git(work.parent, "init", "-q", str(work))
    _git(work, "add", "-A")
    _git(work, "commit", "-qm", "before")
    _git(work, "tag", "v1.2")
    (work / "shapes.py").write_text(FIXED)
    _git(work, "commit", "-qam", "GOLD-LINE: the solution")
    _git(work, "branch", "future")
    _git(work, "reset", "-q", "--hard", "v1.2")
    (work / "shapes.py").write_text(FIXED)
    _git(work, "stash", "-q")
    (work / ".venv" / "bin").mkdir(parents=True)
    (work / ".venv" / "bin" / "python").symlink_to("/opt/bin/python3")
    (work / ".venv" / "pyvenv.cfg").write_text("home = /opt/python/bin\ninclude-system-site-packages = true\n")
    (work / "run_tests.sh").write_text(RUN_TESTS)
    (work / "docs" / "run_tests.sh").write_text(RUN_TESTS)
    (work / "parsed_commit.json").write_text(dataset_row()["parsed_commit_content"])
    (work / "expected_test_output.json").write_text(json.dumps(EXPECTED))
    cache = work / ".pytest_cache" / "v" / "cache"
    cache.mkdir(parents=True)
    (cache / "lastfailed").write_text(json.dumps({f"r2e_tests/test_1.py::{test}": True for test in EXPECTED}))


def _git(folder: Path, *arguments: str) -> None:
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    subprocess.run(["git", *settings, "-C", str(folder), *arguments], capture_output=True, check=True)
