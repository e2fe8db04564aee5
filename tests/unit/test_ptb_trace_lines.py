"""Lines are cut from what is read without losing a byte."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.supervisor.trace import LINE_LIMIT_BYTES, JsonLines, LineSplitter, trace_record

NOW = datetime(2026, 1, 1, 12, 30, 15, 678900, tzinfo=UTC)


def lines_of(chunks: list[bytes]) -> list[tuple[bytes, bool]]:
    """All lines of a stream that came in these chunks."""
    splitter = LineSplitter()
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.finish()


@given(st.lists(st.binary(max_size=40)))
def test_lines_are_those_of_the_whole_however_it_came(chunks: list[bytes]) -> None:
    *lines, rest = b"".join(chunks).split(b"\n")
    assert lines_of(chunks) == [(line, False) for line in [*lines, *([rest] if rest else [])]]


@pytest.mark.parametrize("extra", [0, 1, LINE_LIMIT_BYTES, 2 * LINE_LIMIT_BYTES + 7])
@pytest.mark.parametrize("size", [1 << 16, 1 << 23])
def test_a_long_line_comes_in_parts_that_make_it_up(extra: int, size: int) -> None:
    whole = b"x" * (LINE_LIMIT_BYTES + extra)
    data = whole + b"\nshort\n"
    found = lines_of([data[at : at + size] for at in range(0, len(data), size)])
    assert found[-1] == (b"short", False)
    assert b"".join(line for line, _ in found[:-1]) == whole
    assert [part for _, part in found[:-1]] == [True] * (len(found) - 2) + [False]
    assert max(len(line) for line, _ in found) <= LINE_LIMIT_BYTES


@given(st.binary())
def test_no_byte_of_a_line_is_lost_in_the_file(tmp_path_factory: pytest.TempPathFactory, line: bytes) -> None:
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    lines = JsonLines(path)
    lines.write(trace_record(NOW, "stderr", line, part=False))
    lines.close()
    (record,) = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    assert record["text"].encode("utf-8", "surrogateescape") == line
    assert record["time"] == "2026-01-01T12:30:15.678+00:00"
    assert "part" not in record


def test_the_file_is_its_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    JsonLines(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
