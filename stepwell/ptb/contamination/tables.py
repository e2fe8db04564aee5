"""Rows of parquet and Arrow files, a batch at a time."""

import importlib
import io
from collections.abc import Iterable, Iterator
from typing import Protocol, cast

ROWS_AT_ONCE = 512
"""Rows of a parquet file that are decoded together."""


class NoArrow(RuntimeError):
    """The package that reads tables is not installed."""


class _Batch(Protocol):
    def to_pylist(self) -> list[object]: ...


class _ParquetFile(Protocol):
    def iter_batches(self, batch_size: int) -> Iterable[_Batch]: ...


class _OpenParquet(Protocol):
    def __call__(self, source: io.BytesIO) -> _ParquetFile: ...


class _Reader(Protocol):
    def __call__(self, source: io.BytesIO) -> Iterable[_Batch]: ...


class _OpenedFile(Protocol):
    num_record_batches: int

    def get_batch(self, i: int) -> _Batch: ...


class _FileReader(Protocol):
    def __call__(self, source: io.BytesIO) -> _OpenedFile: ...


def parquet_records(data: bytes) -> Iterator[object]:
    """The rows of a parquet file, as mappings from column to value.

    Raises:
        NoArrow: pyarrow is not installed.
        OSError, ValueError: the file is broken.
    """
    opened = cast(_OpenParquet, _module("pyarrow.parquet").ParquetFile)(io.BytesIO(data))
    for batch in opened.iter_batches(batch_size=ROWS_AT_ONCE):
        yield from batch.to_pylist()


def arrow_records(data: bytes) -> Iterator[object]:
    """The rows of an Arrow file or stream (what `datasets` saves to disk). Raises as `parquet_records`."""
    ipc = _module("pyarrow.ipc")
    if data.startswith(b"ARROW1"):
        file = cast(_FileReader, ipc.open_file)(io.BytesIO(data))
        batches = (file.get_batch(number) for number in range(file.num_record_batches))
    else:
        batches = iter(cast(_Reader, ipc.open_stream)(io.BytesIO(data)))
    for batch in batches:
        yield from batch.to_pylist()


def _module(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NoArrow("a table, which needs pyarrow: pip install 'stepwell[ptb]'") from error
