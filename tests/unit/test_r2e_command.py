"""`stepwell tasks import-r2e`: what it prints, and its exit codes."""

import hashlib
import json
from pathlib import Path

import pytest

from cli.main import main
from stepwell.tasks.r2e.images import image_names
from stepwell.tasks.r2e.task_set import load_r2e
from tests.r2e_rows import instance_id, write_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path)
    return tmp_path


def arguments(folder: Path, *more: str) -> list[str]:
    return [
        "tasks",
        "import-r2e",
        str(folder / "train.jsonl"),
        "--images",
        str(folder / "images"),
        "--out",
        str(folder / "set"),
        *more,
    ]


def test_the_command_prints_counts_and_digests(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(folder)) == 0
    out = capsys.readouterr().out
    assert "     2 python-pillow/Pillow\n" in out
    assert f"train.jsonl: 6 rows, SHA-256 {hashlib.sha256((folder / 'train.jsonl').read_bytes()).hexdigest()}" in out
    assert f"6 tasks in {folder / 'set' / 'train'}, ordered by files, digest " in out


def test_the_command_prints_one_json_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = folder / "ids.txt"
    ids.write_text(f"{instance_id(0)}\n\n{instance_id(1, 'numpy')}\n")
    assert main(arguments(folder, "--json", "--split", "val", "--ids", str(ids))) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["tasks"], said["split"], said["left_out"], said["missing_images"]) == (2, "validation", 4, [])
    assert said["digest"] == load_r2e(folder / "set", "validation").manifest.digest


def test_the_command_names_what_is_missing_and_makes_no_set(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for image in (folder / "images" / "r2egym").iterdir():
        image.unlink()
    assert main(arguments(folder)) == 1
    said = capsys.readouterr().err
    assert f"2 tasks have no image in {folder / 'images'}:" in said
    assert " or ".join(image_names(instance_id(0))) in said
    assert said.endswith("no set was made\n")


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--ids", "nothing.txt"], 2, "cannot read the ids in nothing.txt"),
        (["--pass-rates", "nothing.json"], 2, "cannot read the pass rates in nothing.json"),
        (["--sha256", "0" * 64], 1, "it is another file or was cut off"),
    ],
)
def test_the_command_says_what_it_cannot_do(
    folder: Path, capsys: pytest.CaptureFixture[str], more: list[str], code: int, said: str
) -> None:
    assert main(arguments(folder, *more)) == code
    assert said in capsys.readouterr().err


def test_pass_rates_come_out_of_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = folder / "rates.json"
    rates.write_text('{"python-pillow/Pillow": 0.1, "numpy/numpy": "high"}')
    assert main(arguments(folder, "--pass-rates", str(rates))) == 2
    assert "holds no pass rates" in capsys.readouterr().err
    rates.write_text('{"python-pillow/Pillow": 0.1, "numpy/numpy": 0.2}')
    assert main(arguments(folder, "--pass-rates", str(rates))) == 2
    assert "tornadoweb/tornado" in capsys.readouterr().err
