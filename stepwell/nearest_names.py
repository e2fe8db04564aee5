"""What somebody may have meant who gave a name that there is not."""

import difflib
from collections.abc import Iterable

CUTOFF = 0.5
"""Least likeness, by `difflib`: half of the characters in order."""


def did_you_mean(name: str, known: Iterable[str], *, most: int = 1) -> str:
    """`did you mean 'micro-1'?`, or nothing where no known name is near.

    Args:
        name: What was given.
        known: What there is.
        most: Names offered at most, the nearest first.
    """
    near = difflib.get_close_matches(name, list(known), n=most, cutoff=CUTOFF)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""
