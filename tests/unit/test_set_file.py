"""Task sets in files."""

import io
import json
from pathlib import Path

import pytest

from stepwell.tasks.forge import ForgeCounts, forge
from stepwell.tasks.set_file import BrokenSetFile, read_set, write_set
from stepwell.tasks.task import Origin, Task

ORIGIN = Origin(
    package="p",
    version="1",
    sha256="00",
    licence="MIT",
    kind="k",
    path="a.py",
    function="f",
    line=1,
    function_lines=2,
    package_lines=3,
    package_files=1,
    covering_tests=1,
    failing_tests=1,
)


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    made = list(forge(1, ForgeCounts(train=4, validation=2, confirm=0, heldout_family=1)).every())
    return [made[0].model_copy(update={"origin": ORIGIN}), *made]


def test_what_was_written_is_read(tasks: list[Task], tmp_path: Path) -> None:
    file = tmp_path / "set.jsonl"
    with file.open("w", encoding="utf-8") as opened:
        write_set(tasks, opened)
    assert read_set(file) == tasks


def test_each_text_is_written_once_and_the_bytes_are_the_same_each_time(tasks: list[Task]) -> None:
    first, second, alone = io.StringIO(), io.StringIO(), io.StringIO()
    write_set(tasks * 2, first)
    write_set(tasks * 2, second)
    write_set(tasks, alone)
    assert first.getvalue() == second.getvalue()
    texts = [line for line in first.getvalue().splitlines() if '{"text"' in line]
    assert texts == [line for line in alone.getvalue().splitlines() if '{"text"' in line]


def test_whole_tasks_are_read_as_well(tasks: list[Task], tmp_path: Path) -> None:
    file = tmp_path / "whole.jsonl"
    file.write_text("".join(task.model_dump_json() + "\n" for task in tasks))
    assert read_set(file) == tasks


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"text": 1, "id": 2}', "{}", '{"files": {"a": 7}, "hidden": {}, "gold": {}}']
)
def test_a_line_that_is_neither_says_its_number(line: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text('{"text": "x"}\n' + line + "\n")
    with pytest.raises(BrokenSetFile, match="line 2 of"):
        read_set(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenSetFile, match="nowhere"):
        read_set(tmp_path / "nowhere")


def test_a_task_without_an_origin_has_none_in_its_stored_form_and_one_with_it_another_digest(tasks: list[Task]) -> None:
    with_origin, without = tasks[0], tasks[1]
    assert "origin" not in json.loads(without.model_dump_json())
    assert with_origin.digest != without.digest
