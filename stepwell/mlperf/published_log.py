"""Reads a log that somebody else wrote."""

import json
from typing import Any


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
            self.lines.append(read)

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
