"""Importing: streaming, digests, images, secrets kept apart, and everything that is wrong named at once."""

import hashlib
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from stepwell.tasks.manifest import task_blob
from stepwell.tasks.r2e.images import image_names
from stepwell.tasks.r2e.importing import CannotImport, ImportRequest, import_r2e
from stepwell.tasks.r2e.reading import UnreadableFile
from stepwell.tasks.r2e.secrets import R2ESecrets, UnknownPatch
from stepwell.tasks.r2e.task_set import SECRETS_FOLDER, TASKS_FILE, BrokenSet, load_r2e
from tests.r2e_rows import (
    EXPECTED,
    ISSUE,
    REPOS,
    TESTS,
    benchmark_row,
    instance_id,
    secret_texts,
    write_folder,
    write_rows,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path)
    return tmp_path


def request(folder: Path, **fields: Any) -> ImportRequest:
    values = {
        "files": (folder / "train.jsonl",),
        "images": folder / "images",
        "split": "train",
        "out": folder / "set",
    }
    return ImportRequest(**(values | fields))


def test_a_set_holds_its_tasks_in_the_files_order(folder: Path) -> None:
    report = import_r2e(request(folder))
    assert not report.refused
    assert report.by_repo == {"python-pillow/Pillow": 2, "numpy/numpy": 2, "tornadoweb/tornado": 2}
    made = load_r2e(folder / "set", "train")
    assert [task.id for task in made.tasks] == [instance_id(number, REPOS[number % 3]) for number in range(6)]
    assert made.manifest.digest == report.digest
    assert made.manifest.sources[0].sha256 == hashlib.sha256((folder / "train.jsonl").read_bytes()).hexdigest()
    first = made.tasks[0]
    assert (first.family, first.issue, first.split) == ("python-pillow/Pillow", ISSUE, "train")
    assert first.image is not None
    assert first.image.file == f"r2egym/{image_names(first.id)[0]}"
    assert first.image.sha256 == hashlib.sha256(b"SIF of 0").hexdigest()


def test_what_the_agent_may_see_holds_no_secret(folder: Path) -> None:
    import_r2e(request(folder))
    made = load_r2e(folder / "set", "train")
    public = (folder / "set" / "train" / TASKS_FILE).read_text() + (folder / "set" / "train" / "set.json").read_text()
    public += "".join(task_blob(task).decode() for task in made.tasks)
    assert [what for what, text in secret_texts().items() if text in public] == []
    assert all(
        task.files == {} and task.hidden == {} and task.gold == {} and task.expected == () for task in made.tasks
    )


def test_secrets_are_their_owners_alone_and_named_by_their_digest(folder: Path) -> None:
    import_r2e(request(folder))
    made = load_r2e(folder / "set", "train")
    files = made.secrets_files(made.tasks)
    assert [file.name for file in files] == [task.secrets for task in made.tasks]
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert hashlib.sha256(file.read_bytes()).hexdigest() == file.name
    secrets = R2ESecrets.model_validate_json(files[0].read_bytes())
    assert (secrets.tests, secrets.expected) == (TESTS, EXPECTED)


def test_the_same_rows_give_the_same_set_wherever_it_lies(folder: Path) -> None:
    one = import_r2e(request(folder))
    other = import_r2e(request(folder, out=folder / "other"))
    assert one.digest == other.digest


def test_splits_of_one_set_stand_side_by_side(folder: Path) -> None:
    import_r2e(request(folder))
    import_r2e(request(folder, split="validation"))
    assert {task.split for task in load_r2e(folder / "set", "validation").tasks} == {"validation"}
    assert {path.name for path in (folder / "set").iterdir()} == {"train", "validation"}


def test_ids_choose_and_order(folder: Path) -> None:
    ids = (instance_id(4, "numpy"), instance_id(0))
    report = import_r2e(request(folder, ids=ids))
    assert tuple(task.id for task in load_r2e(folder / "set", "train").tasks) == ids
    assert (report.left_out, report.order) == (4, "ids")


def test_pass_rates_order_by_the_curriculum(folder: Path) -> None:
    rates = {"python-pillow/Pillow": 0.1, "numpy/numpy": 0.5, "tornadoweb/tornado": 0.9}
    report = import_r2e(request(folder, pass_rates=rates))
    families = [task.family for task in load_r2e(folder / "set", "train").tasks]
    assert report.order == "curriculum"
    assert families == [
        repo for repo in ("tornadoweb/tornado", "numpy/numpy", "python-pillow/Pillow") for _ in range(2)
    ]


def test_everything_wrong_is_named_at_once_and_nothing_is_written(folder: Path) -> None:
    bad = benchmark_row(6) | {"surplus": 1}
    write_rows(folder / "more.jsonl", [bad, benchmark_row(0), benchmark_row(7), "no row"])
    report = import_r2e(request(folder, files=(folder / "train.jsonl", folder / "more.jsonl"), ids=None))
    assert len(report.bad_rows) == 3
    assert report.bad_rows[0].startswith("more.jsonl:1: row.surplus is 1; allowed: the keys agent_ref")
    assert report.bad_rows[1] == f"row 2 of more.jsonl: {instance_id(0)} stands in row 1 of train.jsonl too"
    assert report.bad_rows[2].startswith("more.jsonl:4: row is 'no row'")
    assert report.missing_images == [instance_id(7)]
    assert report.digest is None
    assert list((folder / "set").iterdir()) == []


def test_ids_that_are_nowhere_are_all_named(folder: Path) -> None:
    absent = (instance_id(8), instance_id(9))
    assert import_r2e(request(folder, ids=(instance_id(0), *absent))).absent_ids == list(absent)


def test_a_digest_that_differs_is_refused(folder: Path) -> None:
    with pytest.raises(UnreadableFile, match="it is another file or was cut off"):
        import_r2e(request(folder, sha256=("0" * 64,)))
    right = hashlib.sha256((folder / "train.jsonl").read_bytes()).hexdigest()
    assert not import_r2e(request(folder, sha256=(right.upper(),))).refused


def test_a_set_that_is_there_is_not_written_over(folder: Path) -> None:
    import_r2e(request(folder))
    with pytest.raises(CannotImport, match="is there already"):
        import_r2e(request(folder))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"ids": ("a", "a")}, "listed twice"),
        ({"sha256": ("0", "1")}, "2 digests for 1 files"),
        ({"ids": ("a",)}, "no row"),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(folder: Path, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(CannotImport, match=said):
        import_r2e(request(folder, **fields))


def test_a_row_that_cannot_be_stored_is_named(folder: Path) -> None:
    write_rows(folder / "train.jsonl", [benchmark_row(0, tests={"test_1.py": "x = '\ud800'"})])
    report = import_r2e(request(folder))
    assert len(report.bad_rows) == 1
    assert "cannot be stored" in report.bad_rows[0]


def test_a_set_that_was_touched_is_refused(folder: Path) -> None:
    import_r2e(request(folder))
    place = folder / "set" / "train"
    next((place / SECRETS_FOLDER).iterdir()).unlink()
    with pytest.raises(BrokenSet, match="1 files are missing"):
        load_r2e(folder / "set", "train")
    (place / TASKS_FILE).write_bytes(b"")
    with pytest.raises(BrokenSet, match="not as it was written"):
        load_r2e(folder / "set", "train")
    with pytest.raises(BrokenSet, match="it holds train"):
        load_r2e(folder / "set", "validation")


def test_a_gold_patch_of_another_form_is_refused() -> None:
    secrets = R2ESecrets(instance="a", tests=TESTS, expected={"test_area": "PASSED"}, commit='{"file_diffs": [{}]}')
    with pytest.raises(UnknownPatch, match=r"header\.file\.path"):
        secrets.gold_files()


def test_a_gold_patch_may_remove_a_file() -> None:
    diff = {"header": {"file": {"path": "gone.py"}}, "new_file_content": "", "plus_file": {"path": "/dev/null"}}
    empty = {"header": {"file": {"path": "empty.py"}}, "new_file_content": "", "plus_file": {"path": "b/empty.py"}}
    secrets = R2ESecrets(instance="a", tests={}, expected={}, commit=json.dumps({"file_diffs": [diff, empty]}))
    assert secrets.gold_files() == {"gone.py": None, "empty.py": b""}
