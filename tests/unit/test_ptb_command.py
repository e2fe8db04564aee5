"""`stepwell ptb leaderboard`."""

import json
from pathlib import Path

import pytest

from cli.main import main
from tests.ptb_results import MODELS, base_cells, basis, configuration, everywhere, run_cells, write_results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two agents, one of them flagged once; one run that waits; an ablation."""
    on, first, second = basis(), configuration("alpha"), configuration("beta", effort="high")
    lines = [on, *base_cells(on)]
    for number in range(5):
        lines += run_cells(on, first, f"r{number}", everywhere(40.0 + number))
        lines += run_cells(on, second, f"r{number}", everywhere(20.0 + number), flagged=[(MODELS[0], "gsm8k")])
    points = everywhere(50.0)
    del points[MODELS[0], "bfcl"]
    lines += run_cells(on, first, "late", points, unscored=[(MODELS[0], "bfcl")])
    lines += run_cells(on, configuration("alpha", hours=1.0), "r0", everywhere(30.0))
    return write_results(tmp_path / "results.jsonl", *lines)


def test_the_tables_say_what_the_ranking_stands_on(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "150")  # whatever the terminal that the suite runs in
    assert main(["ptb", "leaderboard", str(results), "--cells"]) == 0
    said = capsys.readouterr().out
    for wanted in (
        "weighted points: base 15.50 (from these results)",
        "Ranking",
        "42.00",
        "40.04 to 43.96",
        "37.5%",
        "Ablations, not ranked",
        "1 hours, not 10",
        f"left out until scored: alpha, run-set late: {MODELS[0]} on bfcl",
        "contamination",
    ):
        assert wanted in said, said


def test_json_holds_raw_flag_and_imputed_apart(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ptb", "leaderboard", str(results), "--json"]) == 0
    (board,) = json.loads(capsys.readouterr().out)
    assert board["key"] == basis().key
    assert [row["configuration"]["agent"] for row in board["rows"]] == ["alpha", "beta"]
    flagged = [cell for row in board["rows"] for cell in row["cells"] if cell["flags"]]
    assert [(one["raw"], one["imputed"], one["counted"]) for one in flagged] == [
        (20.0 + n, 10.0, 10.0) for n in range(5)
    ]


def test_other_keys_are_other_tables(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = basis(regime="another")
    cells = [*base_cells(other), *run_cells(other, configuration("gamma"), "r0", everywhere(99.0))]
    second = write_results(tmp_path / "more.jsonl", other, *cells)
    assert main(["ptb", "leaderboard", str(results), str(second)]) == 0
    said = capsys.readouterr().out
    assert "2 comparability keys: their scores must not be compared" in said
    assert main(["ptb", "leaderboard", str(results), str(second), "--json"]) == 0
    boards = json.loads(capsys.readouterr().out)
    assert sorted(len(board["rows"]) for board in boards) == [1, 2]


@pytest.mark.parametrize("name", ["none.jsonl", "bad.jsonl"])
def test_a_file_without_results_is_a_usage_error(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.jsonl").write_text("{}\n", encoding="utf-8")
    assert main(["ptb", "leaderboard", str(tmp_path / name)]) == 2
    assert name in capsys.readouterr().err


def test_missing_base_scores_are_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on = basis()
    path = write_results(tmp_path / "a.jsonl", on, *run_cells(on, configuration(), "r0", everywhere(1.0)))
    assert main(["ptb", "leaderboard", str(path)]) == 2
    assert "4 base scores are missing" in capsys.readouterr().err


def test_the_page_is_written_beside_what_is_printed(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "pages" / "board.html"
    assert main(["ptb", "leaderboard", str(results), "--html", str(page)]) == 0
    said = capsys.readouterr().out
    assert "Ranking" in said
    assert f"Page: {page}" in said
    written = page.read_text(encoding="utf-8")
    assert written.startswith("<!doctype html>")
    for wanted in ("Ablations, not ranked", "Left out until scored: alpha", "alpha 10 h", "42.00", basis().key):
        assert wanted in written
    assert main(["ptb", "leaderboard", str(results), "--json", "--html", str(page)]) == 0
    json.loads(capsys.readouterr().out)


def test_a_page_that_cannot_be_written_is_an_error(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ptb", "leaderboard", str(results), "--html", str(tmp_path)]) == 1
    assert "choose another place with --html" in capsys.readouterr().err


def test_the_page_of_no_results_says_so(tmp_path: Path) -> None:
    path, page = write_results(tmp_path / "a.jsonl", basis()), tmp_path / "board.html"
    assert main(["ptb", "leaderboard", str(path), "--html", str(page)]) == 0
    assert "No agent has results yet" in page.read_text(encoding="utf-8")
