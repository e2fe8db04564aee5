"""Reads a log that somebody else wrote."""

import json
from typing import Any, cast

_PARTS = ("key", "value", "time_ms", "metadata")
"""Of every line."""


class NoReferenceLog(ValueError):
    """A file that is no log of this benchmark; the message says what it lacks."""


class PublishedLog:
    """Lines of a log, by key.

    Args:
        text: The log; lines of other programs in it are left aside.

    Raises:
        NoReferenceLog: a line cannot be read.
    """

    def __init__(self, text: str) -> None:
        self.lines: list[dict[str, Any]] = []
        for number, line in enumerate(text.splitlines(), 1):
            _, token, record = line.partition(":::MLLOG ")
            if not token:
                continue
            try:
                read = json.loads(record)
            except ValueError as error:
                raise NoReferenceLog(f"line {number} cannot be read: {error}") from None
            missing = _PARTS if not isinstance(read, dict) else [part for part in _PARTS if part not in read]
            if missing:
                raise NoReferenceLog(f"line {number} has no {', '.join(missing)}: it is no line of a benchmark log")
            self.lines.append(cast(dict[str, Any], read))

    def every(self, key: str) -> list[dict[str, Any]]:
        """Lines of a key."""
        return [line for line in self.lines if line["key"] == key]

    def first(self, key: str) -> dict[str, Any]:
        """The first line of a key. Raises NoReferenceLog: there is none."""
        found = self.every(key)
        if not found:
            raise NoReferenceLog(f"the log has no line {key!r}: it is no log of the benchmark's reference")
        return found[0]

    def setting(self, key: str) -> Any:
        """Value of a key. Raises as `first`."""
        return self.first(key)["value"]
