"""Files of R2E-Gym, read row by row."""

import json
import tracemalloc
from pathlib import Path

import pytest

from stepwell.tasks.r2e.reading import UnreadableFile, rows_of
from stepwell.tasks.r2e.rows import BadRow
from tests.r2e_rows import REPOS, benchmark_row, dataset_row, instance_id


def test_a_file_that_is_neither_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"\.csv"):
        list(rows_of(tmp_path / "rows.csv"))
    with pytest.raises(UnreadableFile, match="No such file"):
        list(rows_of(tmp_path / "rows.jsonl"))


def test_a_line_that_is_no_json_is_a_bad_row_and_the_next_is_read(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{\n\n" + json.dumps(benchmark_row()) + "\n")
    bad, good = rows_of(tmp_path / "rows.jsonl")
    assert isinstance(bad, BadRow)
    assert str(bad).startswith("rows.jsonl:1: row is")
    assert not isinstance(good, BadRow)
    assert good.instance_id == instance_id(0)


def test_rows_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with path.open("w") as file:
        for number in range(3):
            file.write(json.dumps(benchmark_row(number, tests={"test_1.py": "x" * 300_000})) + "\n")
        file.write("{")
    reading = rows_of(path)
    first = next(reading)
    assert not isinstance(first, BadRow)
    assert len(first.tests["test_1.py"]) == 300_000
    with path.open("a") as file:
        file.write("}\n")
    assert len(list(reading)) == 3


def test_memory_holds_a_few_rows_whatever_the_file_has(tmp_path: Path) -> None:
    path, size = tmp_path / "rows.jsonl", 300_000
    with path.open("w") as file:
        for number in range(40):
            file.write(json.dumps(benchmark_row(number, tests={"test_1.py": "x" * size})) + "\n")
    tracemalloc.start()
    try:
        count = sum(not isinstance(row, BadRow) for row in rows_of(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 40
    assert peak < 20 * size < path.stat().st_size


def test_a_parquet_file_gives_the_same_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the package pyarrow is not installed: pip install 'stepwell[r2e]'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="the package pyarrow has no parquet here")
    rows = [dataset_row(number, REPOS[number % 3]) for number in range(20)]
    rows[7]["docker_image"] = "x/pillow:1"
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    found = list(rows_of(tmp_path / "rows.parquet"))
    assert isinstance(found[7], BadRow)
    assert str(found[7]).startswith("rows.parquet, row 8: row.docker_image is 'x/pillow:1'")
    ids = [row.instance_id for row in found if not isinstance(row, BadRow)]
    assert ids == [instance_id(number, REPOS[number % 3]) for number in range(20) if number != 7]


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the package pyarrow is not installed: pip install 'stepwell[r2e]'")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1" + b"x" * 100 + b"PAR1")
    with pytest.raises(UnreadableFile, match="as parquet"):
        list(rows_of(tmp_path / "rows.parquet"))
