"""The agent's output as lines with their time and stream, `trace.jsonl`: complete, in the order in which it was read.

Bytes that are no UTF-8 are kept as lone surrogates (Python's `surrogateescape`), so that nothing is lost.
"""

import json
from datetime import UTC, datetime
from pathlib import Path

from stepwell.ptb.supervisor.order import Stream

LINE_LIMIT_BYTES = 1 << 20
"""A longer line is written in parts, all but the last with `"part": true`."""


def utc_now() -> datetime:
    """This moment, by the machine's clock."""
    return datetime.now(UTC)


class JsonLines:
    """A file of JSON objects, one a line.

    Args:
        path: Made if it is not there, readable by this user alone.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch(mode=0o600)
        self._file = path.open("a", encoding="utf-8", newline="\n")

    def write(self, *records: object) -> None:
        """Appends objects; all are in the file when it returns.

        Raises:
            OSError: the disk is full, or failed.
        """
        self._file.writelines(json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n" for record in records)
        self._file.flush()

    def close(self) -> None:
        """Frees the file."""
        self._file.close()


class LineSplitter:
    """Cuts what is read of one stream into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[tuple[bytes, bool]]:
        """Lines that are whole now, without their ends, and whether each is only a part of one."""
        self._rest += data
        *lines, rest = self._rest.split(b"\n")
        found: list[tuple[bytes, bool]] = []
        for line in lines:
            found += [(bytes(part), True) for part in _parts(line)[:-1]]
            found.append((bytes(_parts(line)[-1]), False))
        while len(rest) > LINE_LIMIT_BYTES:
            found.append((bytes(rest[:LINE_LIMIT_BYTES]), True))
            rest = rest[LINE_LIMIT_BYTES:]
        self._rest = bytearray(rest)
        return found

    def finish(self) -> list[tuple[bytes, bool]]:
        """The last line, if it has no end."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [(rest, False)] if rest else []


def trace_record(when: datetime, stream: Stream, line: bytes, part: bool) -> dict[str, str | bool]:
    """One line of the trace."""
    record: dict[str, str | bool] = {
        "time": when.isoformat(timespec="milliseconds"),
        "stream": stream,
        "text": line.decode("utf-8", "surrogateescape"),
    }
    return record | {"part": True} if part else record


def _parts(line: bytearray) -> list[bytearray]:
    """A line in pieces of `LINE_LIMIT_BYTES`; one empty piece for an empty line."""
    return [line[at : at + LINE_LIMIT_BYTES] for at in range(0, max(1, len(line)), LINE_LIMIT_BYTES)]
