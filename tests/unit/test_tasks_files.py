"""Files that `stepwell tasks` writes: what is refused before the work, and that none is left half written."""

from pathlib import Path
from typing import IO

import pytest

from cli.tasks_files import UnusableFile, check_out, write_whole
from stepwell.tasks.forge import ForgeCounts, forge
from stepwell.tasks.set_file import SET_STARTS, write_set


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "is a folder"), ("nowhere/set.jsonl", "there is no folder"), ("notes.md", "exists and is something else")],
)
def test_a_file_that_cannot_be_or_would_be_lost_is_refused(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n")
    with pytest.raises(UnusableFile, match=said):
        check_out("--out", tmp_path / name, starts=SET_STARTS)
    assert (tmp_path / "notes.md").read_text() == "# Notes\n"


@pytest.mark.parametrize("held", [None, "", '{"text": "a"}\n', '{ "id": 1}'])
def test_a_file_that_is_new_empty_or_of_the_same_kind_is_taken(held: str | None, tmp_path: Path) -> None:
    if held is not None:
        (tmp_path / "set.jsonl").write_text(held)
    check_out("--out", tmp_path / "set.jsonl", starts=SET_STARTS)
    check_out("--out", None, starts=SET_STARTS)


@pytest.mark.parametrize("held", ["{}", '{"other": 1}', "{", "[1]", "text"])
def test_other_json_is_not(held: str, tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text(held)
    with pytest.raises(UnusableFile):
        check_out("--out", tmp_path / "set.jsonl", starts=SET_STARTS)


def test_a_set_that_was_written_may_be_written_again(tmp_path: Path) -> None:
    tasks = forge(0, ForgeCounts(train=1, validation=0, confirm=0, heldout_family=0)).train
    file = tmp_path / "set.jsonl"
    for _ in range(2):
        check_out("--out", file, starts=SET_STARTS)
        write_whole(file, lambda opened: write_set(tasks, opened))


def test_a_file_keeps_its_content_and_leaves_nothing_beside_it_where_the_next_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text("before")

    def fail(opened: IO[str]) -> None:
        opened.write("half")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        write_whole(file, fail)
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_one_and_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    (tmp_path / "link").symlink_to("there")
    write_whole(tmp_path / "link", lambda opened: opened.write("new"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text() == "new"
    write_whole(Path("/dev/null"), lambda opened: opened.write("new"))
    assert Path("/dev/null").is_char_device()
