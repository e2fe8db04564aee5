"""What differs between two logs of one run, key by key: what was added, left out, or has another value."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class KeyChange(NamedTuple):
    """One key that differs."""

    key: str
    """Of the log; `tracked_stats.<name>` for a statistic."""
    was: tuple[Any, ...]
    """Its values in the first log, in order; empty if it was not there."""
    now: tuple[Any, ...]
    """In the second."""

    def __str__(self) -> str:
        if not self.was:
            return f"added    {self.key} = {_shown(self.now)}"
        if not self.now:
            return f"left out {self.key} (was {_shown(self.was)})"
        return f"changed  {self.key} = {_shown(self.now)} (was {_shown(self.was)})"


def key_changes(first: str, second: str) -> list[KeyChange]:
    """Keys whose values differ between two logs, in the order of the first, then of the second. Times and where lines
    come from are left aside, of statistics only the names count."""
    was, now = _values(first), _values(second)
    return [
        KeyChange(key, was.get(key, ()), now.get(key, ()))
        for key in dict.fromkeys([*was, *now])
        if was.get(key) != now.get(key)
    ]


def _values(text: str) -> Mapping[str, tuple[Any, ...]]:
    values: dict[str, tuple[Any, ...]] = {}
    for line in text.splitlines():
        _, token, record = line.partition(":::MLLOG ")
        if not token:
            continue
        read = json.loads(record)
        key, value = read["key"], read["value"]
        if key == "tracked_stats":
            values.update({f"{key}.{name}": ("…",) for name in value})
        else:
            values[key] = (*values.get(key, ()), value)
    return values


def _shown(values: tuple[Any, ...]) -> str:
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
