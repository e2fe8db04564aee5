"""The list of benchmarks' files, and `stepwell ptb files`."""

from pathlib import Path

import pytest

from cli.main import main
from stepwell.ptb.benchmarks.files import BrokenBenchmarkFiles, load_benchmark_files
from tests.ptb_rows import aime_rows, gsm8k_rows, write_lines


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A list of GSM8K's two files, of which three rows are meant."""
    (tmp_path / "data").mkdir()
    test = write_lines(tmp_path / "data" / "test.jsonl", gsm8k_rows(["1", "2", "3", "4"]))
    train = write_lines(tmp_path / "data" / "train.jsonl", gsm8k_rows(["1"]))
    path = tmp_path / "files.toml"
    add = ["--add", f"gsm8k.test={test}", "--add", f"gsm8k.train={train}", "--rows", "gsm8k=3"]
    assert main(["ptb", "files", str(path), *add]) == 0
    return path


def test_a_list_names_files_by_benchmark_and_holds_wherever_it_lies_beside_them(written: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("data", "files.toml"):
        (tmp_path / name).rename(moved / name)
    found = load_benchmark_files(moved / "files.toml")
    assert found["gsm8k"].rows == 3
    assert found["gsm8k"].paths == {"test": moved / "data" / "test.jsonl", "train": moved / "data" / "train.jsonl"}


def test_the_command_says_what_is_meant(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["ptb", "files", str(written)]) == 0
    assert "gsm8k: 4 items, of which the first 3 are meant" in capsys.readouterr().out


def test_a_file_that_was_changed_is_found(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = written.parent / "data" / "test.jsonl"
    test.write_text(test.read_text().replace("#### 4", "#### 5"))
    with pytest.raises(BrokenBenchmarkFiles, match="take the file anew from openai/grade-school-math"):
        load_benchmark_files(written)
    capsys.readouterr()
    assert main(["ptb", "files", str(written)]) == 2
    assert "has the SHA-256" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[gsm9k.files]\n", "names the benchmark 'gsm9k'.*did you mean 'gsm8k'"),
        ("[aime2025.files]\n", r"names \[\] for aime2025: wanted test"),
        ('[aime2025.files.test]\npath = "x"\n', r"aime2025\.files\.test\.sha256"),
        ("[aime2025]\nrows = 0\nfiles = {}\n", r"aime2025\.rows"),
        ("[aime2025]\nrow = 1\nfiles = {}\n", r"aime2025\.row"),
        ("aime2025 = [", "cannot be read as TOML"),
        (f'[aime2025.files.test]\npath = "x"\nsha256 = "{"0" * 64}"\n', "x cannot be read"),
    ],
)
def test_a_list_that_says_something_else_is_refused_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "files.toml"
    path.write_text(text)
    with pytest.raises(BrokenBenchmarkFiles, match=reason):
        load_benchmark_files(path)


def test_what_cannot_be_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, rows = tmp_path / "files.toml", write_lines(tmp_path / "aime.jsonl", aime_rows(2))
    for arguments, reason in (
        (["--add", "aime2025=x"], "names no file"),
        (["--add", f"aime2025.test={rows}", "--rows", "gsm8k=2"], "of a benchmark that --add names"),
        (["--rows", "aime2025=2"], "--rows does nothing without --add"),
        (["--add", f"aime2025.train={rows}"], "wanted test"),
        (["--add", f"aime2025.test={rows}", "--rows", "aime2025=3"], "its file has 2"),
        (["--add", f"aime2025.test={rows}"], "exists"),
    ):
        assert main(["ptb", "files", str(path), *arguments]) == 2
        assert reason in capsys.readouterr().err
