"""Files that `stepwell tasks` writes: refused before the work if they cannot be, and written whole or not at all."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

SNIFFED_BYTES = 4096


class UnusableFile(ValueError):
    """A file that cannot be written, or holds something else that would be lost."""


def check_out(option: str, path: Path | None, *, starts: tuple[str, ...]) -> None:
    """Checks that a file can be written, and what would be lost.

    Args:
        option: Names the file on the command line.
        path: The file; None is always well.
        starts: First keys of the JSON of a file that may be replaced.

    Raises:
        UnusableFile: what is wrong, and what to do.
    """
    if path is None:
        return
    if path.is_dir():
        raise UnusableFile(f"{option} {path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise UnusableFile(f"{option} {path}: there is no folder {path.parent}: make it, or name another file")
    if not os.access(path if path.exists() and not path.is_file() else path.parent, os.W_OK):
        raise UnusableFile(f"{option} {path} cannot be written by this user: name another file")
    if path.is_file() and not _may_be_replaced(path, starts):
        raise UnusableFile(f"{option} {path} exists and is something else, which would be lost: name another file")


def write_whole(path: Path, write: Callable[[IO[str]], object]) -> None:
    """Writes a file under another name and puts it in place at once; what is no regular file is written to.

    Raises:
        OSError: the file system refuses.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as file:
            write(file)
        return
    target = path.resolve()
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            write(file)
        partial.chmod(0o644)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _may_be_replaced(path: Path, starts: tuple[str, ...]) -> bool:
    """Whether a file is empty, or begins as what is written there does."""
    with path.open("rb") as file:
        head = file.read(SNIFFED_BYTES).decode(errors="replace").lstrip()
    if not head:
        return True
    try:
        key, _ = json.JSONDecoder().raw_decode(head[1:].lstrip())
    except ValueError:
        return False
    return head[0] == "{" and key in starts
