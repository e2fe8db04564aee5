"""Rows of a publisher's file, read strictly: a row that lacks something is an error with its number, never skipped."""

import csv
import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from stepwell.events.canonical import tagged_sha256
from stepwell.ptb.item import Role


class BrokenRows(ValueError):
    """A file does not hold what its benchmark's publisher documents."""


class Row:
    """One row; what is asked of it has to be there, in the type that is asked for.

    Args:
        fields: What the row holds.
        where: File and number, for errors.
    """

    def __init__(self, fields: Mapping[str, object], where: str) -> None:
        self._fields = fields
        self.where = where

    def wrong(self, found: str) -> BrokenRows:
        """An error that names the row."""
        return BrokenRows(f"{self.where}: {found}; take the file anew from its publisher")

    def value(self, key: str) -> object:
        """A field of any type."""
        if key not in self._fields:
            raise self.wrong(f"no field {key!r}, found {sorted(self._fields)}")
        return self._fields[key]

    def text(self, key: str) -> str:
        """A field that is a text and not blank."""
        value = self.value(key)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(f"{key!r} is {value!r}, wanted a text")
        return value

    def number(self, key: str) -> float:
        """A field that is a number."""
        value = self.value(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(f"{key!r} is {value!r}, wanted a number")
        return float(value)

    def texts(self, key: str) -> list[str]:
        """A field that is a list of texts."""
        found = self._list(key)
        texts = [one for one in found if isinstance(one, str)]
        if len(texts) != len(found):
            raise self.wrong(f"{key!r} holds {found!r}, wanted texts")
        return texts

    def rows(self, key: str) -> "list[Row]":
        """A field that is a list of objects."""
        return [Row(_object(one, self, key), f"{self.where}, {key}[{at}]") for at, one in enumerate(self._list(key))]

    def row(self, key: str) -> "Row":
        """A field that is an object."""
        return Row(_object(self.value(key), self, key), f"{self.where}, {key}")

    def list_of_rows(self, key: str) -> "list[list[Row]]":
        """A field that is a list of lists of objects."""
        outer: list[list[Row]] = []
        for at, inner in enumerate(self._list(key)):
            outer.append(Row({"turn": inner}, f"{self.where}, {key}[{at}]").rows("turn"))
        return outer

    def role(self) -> Role:
        """The field `role`: of a message."""
        role = self.text("role")
        for known in get_args(Role):
            if role == known:
                return known
        raise self.wrong(f"the role {role!r} is none of {get_args(Role)}")

    def _list(self, key: str) -> list[object]:
        value = self.value(key)
        if not isinstance(value, list):
            raise self.wrong(f"{key!r} is a {type(value).__name__}, wanted a list")
        return list(value)  # pyright: ignore[reportUnknownVariableType]  # whatever JSON holds


def read_rows(path: Path) -> list[Row]:
    """Rows of a `.jsonl`, `.jsonl.gz` or `.csv` file, in order.

    Raises:
        BrokenRows: no such file, or a line is no object.
    """
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise BrokenRows(f"{path} cannot be read: {error}; take the file from its publisher") from error
    if path.suffix == ".csv":
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        return [Row(dict(row), f"{path}, row {number}") for number, row in enumerate(rows, 1)]
    found: list[Row] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                value: object = json.loads(line)
            except ValueError as error:
                raise BrokenRows(f"{where} is no JSON: {error}; take the file anew from its publisher") from error
            found.append(Row(_object(value, Row({}, where), "line"), where))
    return found


def digest_of_files(files: Mapping[str, Path]) -> str:
    """What a benchmark's data are, by name and content: part of what makes two results comparable."""
    return tagged_sha256(
        "json", *(part for name in sorted(files) for part in (name.encode(), files[name].read_bytes()))
    )


def _object(value: object, row: Row, key: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise row.wrong(f"{key!r} is a {type(value).__name__}, wanted an object")
    return {str(name): inner for name, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
