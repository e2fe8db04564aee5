"""What the readers give: rows of text with the place where they stand, and what could not be read, with the reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One sample of a file: a line, a record, a cell, a string of a program, or a whole text."""

    path: str
    """Of its file from the folder that is checked; members of an archive as `archive.zip!member`."""
    number: int
    """Of the row in its file, from 0."""
    leaves: tuple[str, ...]
    """Every string in it, in order, long keys among them."""


@dataclass(frozen=True)
class Unscanned:
    """Something that was not looked into."""

    path: str
    """As in `Row`."""
    reason: str
    """Why, in few words that are the same for the same cause."""
    count: int = 1
    """Rows or files."""
