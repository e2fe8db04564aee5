"""Which steps of a run a command means: `--step 3`, `--step 3..7`."""

import argparse
import re
from collections.abc import Sequence

_RANGE = re.compile(r"(\d+)(?:\.\.(\d+))?")


class NoSuchStep(LookupError):
    """The run has no such step."""


def step_range(text: str) -> range:
    """The steps of an argument, both ends included.

    Raises:
        argparse.ArgumentTypeError: it is neither a number nor two with dots between them.
    """
    found = _RANGE.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
    if last < first:
        raise argparse.ArgumentTypeError(f"{text!r} is no step and no range of steps: write 3, or 3..7")
    return range(first, last + 1)


def chosen(known: Sequence[int], asked: range | None, what: str) -> list[int]:
    """The steps that are asked for, all that there are by default.

    Args:
        known: Steps that there are, ascending.
        asked: Those of the command line.
        what: What makes a step one of them, for the message: `admitted`.

    Raises:
        NoSuchStep: none of those asked for is there; says which are.
    """
    if asked is None:
        return list(known)
    found = [step for step in known if step in asked]
    if not found:
        words = f"{asked.start}" if len(asked) == 1 else f"{asked.start}..{asked.stop - 1}"
        there = f"steps {known[0]} to {known[-1]} are" if known else "no step is"
        raise NoSuchStep(f"step {words} is not {what} in this run: {there}")
    return found
