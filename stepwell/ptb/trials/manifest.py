"""What lies in a folder, by path, kind, size and content. Links are named and never followed."""

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from stepwell.events.canonical import canonical_json, digest_of_json

MODEL_FOLDER = "final_model"
"""Name of the folder in an agent's work folder that is its submission."""


class Entry(BaseModel):
    """One thing in a folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    """From the folder, with `/`."""
    kind: Literal["file", "folder", "link", "other"]
    size: int
    """Bytes of a file; 0 for the rest."""
    content: str
    """SHA-256 of a file's bytes; what a link says; empty for the rest."""


_ENTRIES: TypeAdapter[tuple[Entry, ...]] = TypeAdapter(tuple[Entry, ...])


def manifest_of(folder: Path) -> tuple[Entry, ...]:
    """Everything below a folder, by path.

    Raises:
        OSError: something in it cannot be read.
    """
    found: list[Entry] = []
    for parent, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(parent) / name
            found.append(_entry(path, path.relative_to(folder).as_posix()))
    return tuple(sorted(found, key=lambda entry: entry.path))


def manifest_blob(entries: tuple[Entry, ...]) -> bytes:
    """As it is stored."""
    return canonical_json([entry.model_dump() for entry in entries])


def manifest_digest(entries: tuple[Entry, ...]) -> str:
    """Of all that it says."""
    return digest_of_json([entry.model_dump() for entry in entries])


def read_manifest(blob: bytes) -> tuple[Entry, ...]:
    """The entries of a stored manifest.

    Raises:
        pydantic.ValidationError: it is none.
    """
    return _ENTRIES.validate_json(blob)


def _entry(path: Path, name: str) -> Entry:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return Entry(path=name, kind="link", size=0, content=os.readlink(path))
    if stat.S_ISDIR(mode):
        return Entry(path=name, kind="folder", size=0, content="")
    if not stat.S_ISREG(mode):
        return Entry(path=name, kind="other", size=0, content="")
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return Entry(path=name, kind="file", size=path.lstat().st_size, content=content)


class NoSubmission(Exception):
    """An agent left no model folder: why."""


def submitted_files(work: Path) -> dict[str, Path]:
    """The files of the model that an agent left, by their paths in its folder. Links count as what they lead to, if it
    lies in the work folder. Whether the model can be loaded, the evaluation finds.

    Args:
        work: The agent's work folder.

    Raises:
        NoSubmission: there is none.
    """
    folder = work / MODEL_FOLDER
    inside = work.resolve()
    if not folder.is_dir() or not folder.resolve().is_relative_to(inside):
        raise NoSubmission(f"there is no folder {MODEL_FOLDER} in the work folder")
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        real = path.resolve()
        if real.is_file() and real.is_relative_to(inside):
            found[path.relative_to(folder).as_posix()] = real
    if not any(name.endswith(".safetensors") for name in found):
        raise NoSubmission(f"{MODEL_FOLDER} holds no weights in safetensors")
    return found


def entries_of(files: Mapping[str, Path]) -> tuple[Entry, ...]:
    """Entries of files, by their names.

    Raises:
        OSError: one cannot be read.
    """
    return tuple(_entry(path, name) for name, path in sorted(files.items()))
