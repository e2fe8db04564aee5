"""Whether a log is the one that was derived: line by line. What a line says is read only to name what differs in it."""

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

MARK = ":::MLLOG "
"""What each line of a log begins with."""


class Difference(NamedTuple):
    """The first line in which two logs differ."""

    number: int
    """Of the line, from 1."""
    derived: str | None
    """As the ledger gives it; None where the log has a line too many."""
    given: str | None
    """As the log has it; None where it ends too early."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the fields that differ; empty where one of the two is no line of a benchmark log."""
        derived, given = _flat(self.derived), _flat(self.given)
        if derived is None or given is None:
            return ()
        return tuple(name for name in {**given, **derived} if given.get(name) != derived.get(name))

    @property
    def source(self) -> str:
        """The event that the line comes from; of a line too many, the one that it names itself."""
        said = _flat(self.given if self.derived is None else self.derived)
        if said is None:
            return "no event"
        if "metadata.stream" not in said:
            return f"no event: the submitter declares {said.get('metadata.declared')}"
        return f"{said.get('metadata.field')} of {said['metadata.stream']} #{said.get('metadata.seq')}"

    def __str__(self) -> str:
        given = "the log ends" if self.given is None else f"it has {self.given}"
        derived = "nothing" if self.derived is None else self.derived
        return f"line {self.number}: {given}, the ledger gives {derived}"


def first_difference(derived: Sequence[str], given: Sequence[str]) -> Difference | None:
    """Where a log departs from what was derived; None where it does not. Line ends do not count.

    Args:
        derived: The lines that the ledger gives.
        given: The lines of the log.
    """
    for number, (wanted, found) in enumerate(zip_longest(derived, given), start=1):
        if _bare(wanted) != _bare(found):
            return Difference(number, _bare(wanted), _bare(found))
    return None


def fields_of(line: str) -> dict[str, Any] | None:
    """The fields of a line; None for what is no line of a benchmark log."""
    if not line.startswith(MARK):
        return None
    try:
        read: Any = json.loads(line.removeprefix(MARK))
    except ValueError:
        return None
    return read if isinstance(read, dict) and isinstance(read.get("metadata"), dict) else None


def _flat(line: str | None) -> dict[str, Any] | None:
    """The fields of a line, those of its metadata among them."""
    fields = None if line is None else fields_of(line)
    if fields is None:
        return None
    metadata = {f"metadata.{name}": value for name, value in fields["metadata"].items()}
    return {name: value for name, value in fields.items() if name != "metadata"} | metadata


def _bare(line: str | None) -> str | None:
    return None if line is None else line.rstrip("\r\n")
