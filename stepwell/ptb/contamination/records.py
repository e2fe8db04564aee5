"""Where the rows of one JSON or YAML document are: a list of records, wherever it lies near the top."""

from collections.abc import Iterator, Mapping
from typing import cast

_DEEPEST = 2
"""Levels below the top at which a list is still taken for one of records."""
_TURN_KEYS = ("role", "from", "speaker")
"""A list of such is one conversation, not rows."""


def records_of(value: object) -> Iterator[object]:
    """The records of a document: elements of its lists near the top, and all that is beside them as one more."""
    beside: list[object] = []
    yield from _records(value, 0, beside)
    if beside:
        yield beside


def _records(value: object, depth: int, beside: list[object]) -> Iterator[object]:
    if isinstance(value, list):
        values = cast("list[object]", value)
        if _is_records(values):
            yield from values
            return
    if isinstance(value, Mapping) and depth < _DEEPEST:
        for key, below in cast("Mapping[object, object]", value).items():
            beside.append({key: None})
            yield from _records(below, depth + 1, beside)
        return
    beside.append(value)


def _is_records(values: list[object]) -> bool:
    first = values[0] if values else None
    if isinstance(first, Mapping):
        return not any(key in first for key in _TURN_KEYS)
    return isinstance(first, str | list)
