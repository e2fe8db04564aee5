"""Reads R2E-Gym's files row by row: memory holds a few rows, not a file."""

import hashlib
import importlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from stepwell.tasks.r2e.rows import COLUMNS, BadRow, R2ERow, parse_benchmark_row, parse_dataset_row

ROW_BYTES_LIMIT = 256 << 20
"""Longest line of a JSONL file; a row has about 650 KB."""
ROWS_AT_ONCE = 8
"""Rows of a parquet file that are decoded together. What a reader holds beside them is a page of each column, whose
size the writer chose: 35 MB for pages of 1 MB, 780 MB for one of 390 MB, measured."""
BUFFER_BYTES = 1 << 20
"""Of a parquet file that are read at once from each column."""


class UnreadableFile(ValueError):
    """A file that cannot be read as what its name says, or is not the one that was asked for."""


def check_file_digest(path: Path, wanted: str | None) -> str:
    """SHA-256 of a file, read in pieces.

    Raises:
        UnreadableFile: it cannot be read, or has another digest than the one wanted.
    """
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    if wanted is not None and found != wanted.lower():
        raise UnreadableFile(
            f"{path} has SHA-256 {found}, wanted {wanted}: it is another file or was cut off; fetch it again"
        )
    return found


def rows_of(path: Path) -> Iterator[R2ERow | BadRow]:
    """The rows of a `.jsonl` or `.parquet` file; in the place of one that is not of the form, what is wrong with it.

    Raises:
        UnreadableFile: it is neither, cannot be read, or needs a library that is not there.
    """
    if path.suffix == ".jsonl":
        yield from _jsonl_rows(path)
    elif path.suffix == ".parquet":
        yield from _parquet_rows(path)
    else:
        raise UnreadableFile(f"{path} ends in {path.suffix!r}: wanted the benchmark's .jsonl or the dataset's .parquet")


def _jsonl_rows(path: Path) -> Iterator[R2ERow | BadRow]:
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(ROW_BYTES_LIMIT):
                number += 1
                place = f"{path.name}:{number}"
                if len(line) == ROW_BYTES_LIMIT:
                    raise UnreadableFile(f"{place} is longer than {ROW_BYTES_LIMIT} bytes: wanted a row a line")
                if line.strip():
                    yield _json_row(line, place)
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error


def _json_row(line: bytes, place: str) -> R2ERow | BadRow:
    try:
        row: object = json.loads(line)
    except ValueError as error:
        return BadRow(place, "row", line.decode(errors="replace"), f"a JSON object ({error})")
    try:
        return parse_benchmark_row(row, place)
    except BadRow as bad:
        return bad


class _Batch(Protocol):
    def to_pylist(self) -> list[dict[str, object]]: ...


class _ParquetFile(Protocol):
    def iter_batches(
        self, batch_size: int, *, columns: Sequence[str] | None, use_threads: bool
    ) -> Iterator[_Batch]: ...


class _OpenParquet(Protocol):
    def __call__(self, source: Path, *, pre_buffer: bool, buffer_size: int) -> _ParquetFile: ...


def _parquet_rows(path: Path) -> Iterator[R2ERow | BadRow]:
    try:
        # Untyped, and not installed with Stepwell itself: its wheel has 55 MB.
        open_parquet: _OpenParquet = importlib.import_module("pyarrow.parquet").ParquetFile
    except ImportError as error:
        raise UnreadableFile(
            f"{path} is parquet, which needs the package pyarrow: pip install 'stepwell[r2e]', or give the "
            "benchmark's .jsonl"
        ) from error
    number = 0
    try:
        file = open_parquet(path, pre_buffer=False, buffer_size=BUFFER_BYTES)
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=COLUMNS, use_threads=False):
            for row in batch.to_pylist():
                number += 1
                try:
                    yield parse_dataset_row(row, f"{path.name}, row {number}")
                except BadRow as bad:
                    yield bad
    except (OSError, ValueError) as error:  # What pyarrow raises for a broken file is a ValueError.
        raise UnreadableFile(f"cannot read {path} as parquet: {error}") from error
