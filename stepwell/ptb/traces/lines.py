"""Lines of a trace: each with the time at which it came, and the stream that it came on.

`2026-11-30T08:32:41.123456Z out {"type": …}`: whoever attends an agent writes them so (`stamped`), and whoever reads a
trace reads them so.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

Stream = Literal["out", "err", "note"]
"""Standard output, standard error, and what the attendant says (a prompt was given, a signal was sent)."""

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) (out|err|note) ")
_FORM = "%Y-%m-%dT%H:%M:%S.%fZ"


class BrokenTrace(ValueError):
    """Bytes that are no stamped lines."""


@dataclass(frozen=True)
class TraceLine:
    """One line."""

    number: int
    """From 1."""
    time: datetime | None
    """UTC."""
    stream: Stream
    text: str
    """Without its end; bytes that are no UTF-8 are replaced."""


def stamped(time: datetime, stream: Stream, line: bytes) -> bytes:
    """A line as a trace holds it.

    Args:
        time: When it came, with its zone.
        stream: On which.
        line: Without its end.
    """
    return time.astimezone(UTC).strftime(_FORM).encode() + b" " + stream.encode() + b" " + line + b"\n"


def read_lines(data: bytes | Iterable[bytes]) -> Iterator[TraceLine]:
    """The lines of a trace.

    Args:
        data: A whole trace, or its lines one by one, as a file gives them.

    Raises:
        BrokenTrace: a line has no stamp.
    """
    for number, line in _numbered(data):
        match = _STAMP.match(line)
        if match is None:
            shown = line[:60].decode("utf-8", "replace")
            raise BrokenTrace(
                f"line {number} of the trace begins with {shown!r}: wanted a time and a stream "
                f"(2026-11-30T08:32:41.123456Z out …); a trace without them is read by plain_lines"
            )
        stream: Stream = "out" if match[2] == b"out" else "err" if match[2] == b"err" else "note"
        time = datetime.strptime(match[1].decode(), _FORM).replace(tzinfo=UTC)
        yield TraceLine(number, time, stream, line[match.end() :].decode("utf-8", "replace"))


def plain_lines(data: bytes | Iterable[bytes]) -> Iterator[TraceLine]:
    """Lines as a program printed them, without stamps, as published traces have them."""
    for number, line in _numbered(data):
        yield TraceLine(number, None, "out", line.decode("utf-8", "replace"))


def _numbered(data: bytes | Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    # Not splitlines(): it also breaks at characters that JSON strings hold.
    lines = data.split(b"\n") if isinstance(data, bytes) else data
    for number, line in enumerate(lines, 1):
        whole = line.removesuffix(b"\n").removesuffix(b"\r")
        if whole:
            yield number, whole
