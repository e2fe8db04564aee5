"""Whether a log is the one that was derived: line by line, without knowing what a line says."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple


class Difference(NamedTuple):
    """The first line in which two logs differ."""

    line: int
    """Its number, from 1."""
    expected: str | None
    """As derived; None where the log has a line too many."""
    found: str | None
    """As the log has it; None where it ends too early."""

    def __str__(self) -> str:
        found = "the log ends" if self.found is None else f"it has {self.found}"
        expected = "nothing" if self.expected is None else self.expected
        return f"line {self.line}: {found}, the ledger gives {expected}"


def first_difference(expected: Sequence[str], found: Sequence[str]) -> Difference | None:
    """Where a log departs from what was derived; None where it does not. Line ends do not count.

    Args:
        expected: The lines that were derived.
        found: The lines of the log.
    """
    for number, (wanted, given) in enumerate(zip_longest(expected, found), start=1):
        if _bare(wanted) != _bare(given):
            return Difference(number, _bare(wanted), _bare(given))
    return None


def _bare(line: str | None) -> str | None:
    return None if line is None else line.rstrip("\r\n")
