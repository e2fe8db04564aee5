"""Whether a log says what the ledger says: it is derived again, and compared line by line."""

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from stepwell.mlperf.lines import Line, mllog_text


class Difference(NamedTuple):
    """The first line that differs."""

    number: int
    """Of the line, from 1."""
    given: str | None
    """As the log has it; None where it has no further line."""
    derived: str | None
    """As the ledger gives it; None where the log has a line too many."""
    source: str
    """The event that the line comes from, or names."""
    parts: tuple[str, ...] = ()
    """Which parts of the line differ, as far as it can be read."""


def first_difference(given: str, lines: Sequence[Line]) -> Difference | None:
    """Where a log departs from what was derived; None where it does not.

    Args:
        given: The log.
        lines: Derived from the ledger.

    Raises:
        NoMlperfLogging: the package that writes lines is not installed.
    """
    pairs = zip_longest(given.splitlines(), mllog_text(lines).splitlines())
    for number, (found, wanted) in enumerate(pairs, 1):
        if found != wanted:
            source = lines[number - 1].source if wanted is not None else _named(found or "")
            return Difference(number, found, wanted, source, _parts(found, wanted))
    return None


def _parts(found: str | None, wanted: str | None) -> tuple[str, ...]:
    """Names of the fields that differ."""
    given, derived = _read(found), _read(wanted)
    if given is None or derived is None:
        return ()
    flat = [
        {**each, **{f"metadata.{name}": value for name, value in each["metadata"].items()}} for each in (given, derived)
    ]
    names = [name for name in {**flat[0], **flat[1]} if name != "metadata"]
    return tuple(name for name in names if flat[0].get(name) != flat[1].get(name))


def _named(line: str) -> str:
    """The event that a line names itself."""
    read = _read(line)
    if read is None or "stream" not in read["metadata"]:
        return "no event"
    return f"{read['metadata']['stream']} #{read['metadata'].get('seq')}"


def _read(line: str | None) -> dict[str, Any] | None:
    """The fields of a line; None for what is none."""
    if line is None or not line.startswith(":::MLLOG "):
        return None
    try:
        read = json.loads(line.removeprefix(":::MLLOG "))
    except ValueError:
        return None
    return read if isinstance(read, dict) and isinstance(read.get("metadata"), dict) else None
