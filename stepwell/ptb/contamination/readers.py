"""Rows of a file by what it is: JSON, JSON lines, parquet, Arrow, CSV, YAML, programs, notebooks, text, anything else.

The name decides first; what does not parse as its name says is read as text, and what is not text by its printable
runs. So nothing falls through: a row is scanned, or counted with a reason.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import yaml

from stepwell.ptb.contamination.files import Content
from stepwell.ptb.contamination.leaves import Decode, leaves_of
from stepwell.ptb.contamination.programs import notebook_texts, program_texts
from stepwell.ptb.contamination.records import records_of
from stepwell.ptb.contamination.rows import Row, Unscanned
from stepwell.ptb.contamination.tables import NoArrow, arrow_records, parquet_records

Found = Row | Unscanned
"""What a reader gives."""

TEXT_PIECE = 4 << 20
"""Characters of a text that are one row at most; it is cut at an empty line."""
LEAST_RUN = 16
"""Printable characters in a row that are text, in a file that is none."""
_RUNS = re.compile(rb"[\x09\x0a\x0d\x20-\x7e]{%d,}" % LEAST_RUN)
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"\x7fELF", b"RIFF", b"%PDF")
_NOT_JSON = (json.JSONDecodeError, RecursionError)
_IDS = "token ids without a tokenizer: name one"


def rows_of(content: Content, decode: Decode | None = None) -> Iterator[Found]:
    """The rows of a file.

    Args:
        content: Its path and bytes.
        decode: Reads token ids.
    """
    reader = _READERS.get(PurePosixPath(content.path).suffix.lower(), _text)
    if content.data.startswith(b"PAR1"):
        reader = _parquet
    elif content.data.startswith(_PICTURES):
        yield Unscanned(content.path, "a picture, sound, program or PDF")
        return
    yield from reader(content, decode)


def _records(path: str, records: Iterator[object], decode: Decode | None) -> Iterator[Found]:
    undecoded = 0
    for number, record in enumerate(records):
        leaves = leaves_of(record, decode)
        undecoded += leaves.undecoded
        if leaves.texts:
            yield Row(path, number, tuple(leaves.texts))
    if undecoded:
        yield Unscanned(path, _IDS, undecoded)


def _json(content: Content, decode: Decode | None) -> Iterator[Found]:
    text = _decoded(content.data)
    try:
        value = json.loads(text) if text is not None else None
    except _NOT_JSON:
        yield from _json_lines(content, decode)
        return
    if text is None:
        yield from _text(content, decode)
        return
    yield from _records(content.path, records_of(value), decode)


def _json_lines(content: Content, decode: Decode | None) -> Iterator[Found]:
    text = _decoded(content.data)
    lines = [] if text is None else [line for line in text.split("\n") if line.strip()]
    if text is None or not any(_parses(line) for line in lines[:3]):
        yield from _text(content, decode)
        return

    def records() -> Iterator[object]:
        for line in lines:
            try:
                yield json.loads(line)
            except _NOT_JSON:
                yield line  # a broken line is text like any other

    yield from _records(content.path, records(), decode)


def _parses(line: str) -> bool:
    try:
        json.loads(line)
    except _NOT_JSON:
        return False
    return True


def _csv(content: Content, decode: Decode | None) -> Iterator[Found]:
    text = _decoded(content.data)
    if text is None:
        yield from _text(content, decode)
        return
    delimiter = "\t" if content.path.endswith(".tsv") else _delimiter(text)
    limit = csv.field_size_limit(len(text) + 1)
    try:
        yield from _records(content.path, iter(csv.reader(io.StringIO(text), delimiter=delimiter)), decode)
    except csv.Error:
        yield from _text(content, decode)
    finally:
        csv.field_size_limit(limit)


def _delimiter(text: str) -> str:
    head = text.split("\n", 1)[0]
    return max(",;\t|", key=head.count)


def _yaml(content: Content, decode: Decode | None) -> Iterator[Found]:
    text = _decoded(content.data)
    try:
        # BaseLoader makes nothing but strings, lists and mappings.
        documents = list(yaml.load_all(text or "", yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError):
        documents = None
    if text is None or documents is None:
        yield from _text(content, decode)
        return
    yield from _records(content.path, (record for each in documents for record in records_of(each)), decode)


def _parquet(content: Content, decode: Decode | None) -> Iterator[Found]:
    yield from _table(content, decode, parquet_records)


def _arrow(content: Content, decode: Decode | None) -> Iterator[Found]:
    yield from _table(content, decode, arrow_records)


def _table(content: Content, decode: Decode | None, records: Callable[[bytes], Iterator[object]]) -> Iterator[Found]:
    try:
        yield from _records(content.path, records(content.data), decode)
    except NoArrow as error:
        yield Unscanned(content.path, str(error))
    except (OSError, ValueError) as error:  # what pyarrow raises for a broken file
        yield Unscanned(content.path, f"a broken table: {type(error).__name__}")


def _program(content: Content, decode: Decode | None) -> Iterator[Found]:
    text = _decoded(content.data)
    if text is None:
        yield from _text(content, decode)
        return
    for number, each in enumerate(program_texts(text)):
        yield Row(content.path, number, (each,))


def _notebook(content: Content, decode: Decode | None) -> Iterator[Found]:
    text = _decoded(content.data)
    try:
        value: object = json.loads(text or "")
    except _NOT_JSON:
        yield from _text(content, decode)
        return
    for number, each in enumerate(notebook_texts(value)):
        yield Row(content.path, number, (each,))


def _text(content: Content, decode: Decode | None) -> Iterator[Found]:
    del decode  # a text has no ids
    text = _decoded(content.data)
    if text is None:
        runs = [run.decode("ascii") for run in _RUNS.findall(content.data)]
        text = "\n".join(runs)
        if not text.strip():
            yield Unscanned(content.path, "bytes without text")
            return
    elif not text.strip():
        yield Unscanned(content.path, "empty")
        return
    for number, piece in enumerate(_pieces(text)):
        yield Row(content.path, number, (piece,))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > TEXT_PIECE:
        end = text.rfind("\n\n", start, start + TEXT_PIECE)
        end = end if end > start else start + TEXT_PIECE
        yield text[start:end]
        start = end
    yield text[start:]


def _decoded(data: bytes) -> str | None:
    """The text that bytes are, None if they are none."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\x00" in data[:4096]:
        return None
    else:
        encoding = "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        printable = sum(32 <= byte < 127 or byte in b"\t\n\r" for byte in data[:4096])
        return data.decode("latin-1") if printable >= 0.8 * min(len(data), 4096) else None


_READERS: dict[str, Callable[[Content, Decode | None], Iterator[Found]]] = {
    ".json": _json,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".csv": _csv,
    ".tsv": _csv,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".py": _program,
    ".ipynb": _notebook,
}
