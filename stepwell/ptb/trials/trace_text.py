"""A supervisor's trace as stamped lines, as traces are kept and read."""

import json
from collections.abc import Iterable
from datetime import datetime

from stepwell.ptb.traces import Stream, stamped

_STREAMS: dict[str, Stream] = {"stdout": "out", "stderr": "err"}


def stamped_trace(lines: Iterable[bytes]) -> bytes:
    """The trace of a supervisor's `trace.jsonl`; pieces of a long line are put together.

    Args:
        lines: Of the file. A last one that was cut off, as by a full disk, is left out.
    """
    found: list[bytes] = []
    parts: dict[str, str] = {}
    for line in lines:
        if not line.endswith(b"\n"):
            continue
        record = json.loads(line)
        text = parts.pop(record["stream"], "") + record["text"]
        if record.get("part"):
            parts[record["stream"]] = text
            continue
        data = text.encode("utf-8", "surrogateescape")
        found.append(stamped(datetime.fromisoformat(record["time"]), _STREAMS[record["stream"]], data))
    return b"".join(found)
