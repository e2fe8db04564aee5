"""Arguments that several verbs take."""

import argparse
from typing import TypeAlias

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # pyright: ignore[reportPrivateUsage]  # no public name
"""What a verb adds its parser to."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Adds `RUN`."""
    parser.add_argument("name", metavar="RUN", help="name of the run")


def positive(text: str) -> int:
    """A whole number from 1.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)
