"""A submission's folder, listed and read with suspicion: links out of it, devices, files that are too large."""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

MOST_ENTRIES = 10_000
"""A model's folder has dozens."""
MOST_JSON_BYTES = 4 << 20
"""Of a configuration; real ones have a few KiB."""

Links = Literal["inside", "anywhere"]
"""Where links may lead: out of a submission they may not; a cache of Hugging Face's is made of links."""


class Refused(ValueError):
    """A submission cannot be evaluated, which is its own doing: the reason is recorded as its failure."""


def regular_files(folder: Path, links: Links) -> dict[str, Path]:
    """The regular files directly in a folder, by name, with links followed.

    Raises:
        Refused: it is no folder, has too many entries, or a link leads out of it.
    """
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise Refused(f"{folder.name} cannot be listed: {error.strerror}; wanted a model's folder") from error
    if len(names) > MOST_ENTRIES:
        raise Refused(f"{folder.name} has {len(names)} entries, at most {MOST_ENTRIES} are looked at")
    root = folder.resolve()
    found: dict[str, Path] = {}
    for name in sorted(names):
        path = folder / name
        if path.is_symlink():
            target = Path(os.path.realpath(path))
            if links == "inside" and not target.is_relative_to(root):
                raise Refused(f"{name} is a link out of the submitted folder: wanted the file itself")
            path = target
        try:
            status = path.stat()
        except OSError:
            continue  # a link to nothing
        if stat.S_ISREG(status.st_mode):
            found[name] = path
    return found


def read_object(path: Path, name: str, most_bytes: int = MOST_JSON_BYTES) -> dict[str, object]:
    """A file that holds one JSON object.

    Raises:
        Refused: it does not, or is too large.
    """
    size = path.stat().st_size
    if size > most_bytes:
        raise Refused(f"{name} has {size} bytes, at most {most_bytes} are read")
    try:
        loaded: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise Refused(f"{name} is no JSON: {str(error)[:200]}") from error
    if not isinstance(loaded, dict):
        raise Refused(f"{name} holds a {type(loaded).__name__}: wanted an object")
    return cast("dict[str, object]", loaded)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def strings_of(table: Mapping[str, object], key: str) -> dict[str, str] | None:
    """A field that is an object of strings; None if it is not."""
    value = table.get(key)
    if not isinstance(value, dict):
        return None
    pairs = {str(name): inner for name, inner in value.items() if isinstance(inner, str)}
    return pairs if len(pairs) == len(value) else None
