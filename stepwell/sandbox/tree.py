"""What a work tree is made of, and its digest. Pure; the listing itself is made inside the sandbox."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal["file", "folder", "link", "other"]
"""`other`: a socket, pipe or device, or what cannot be read or lies too deep; only its path and mode count."""

IGNORED_NAMES = frozenset({".git", "__pycache__", ".pytest_cache"})
"""Names that no listing enters: they change without the work changing."""

_DOMAIN = b"stepwell/tree\0"
_LETTERS: Mapping[Kind, bytes] = {"file": b"f", "folder": b"d", "link": b"l", "other": b"o"}


@dataclass(frozen=True)
class TreeEntry:
    """One name in a work tree."""

    path: bytes
    """Relative POSIX path, as the file system has it."""
    kind: Kind
    mode: int
    """Permission bits, including set-id and sticky."""
    payload: bytes
    """SHA-256 of a file's content (32 bytes), a link's target, else empty."""


def digest_of_entries(entries: Iterable[TreeEntry]) -> str:
    """SHA-256 in hex over all entries sorted by path: kind, mode, path, payload, each with its length."""
    digest = hashlib.sha256(_DOMAIN)
    for entry in sorted(entries, key=lambda entry: entry.path):
        digest.update(_LETTERS[entry.kind])
        for part in (b"%04o" % entry.mode, entry.path, entry.payload):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return digest.hexdigest()


def entries_of_files(files: Mapping[str, bytes]) -> list[TreeEntry]:
    """The entries of a fresh tree: the files with mode 0644, and every folder above them with mode 0755."""
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents if str(parent) != "."}
    entries = [TreeEntry(folder.encode(), "folder", 0o755, b"") for folder in folders]
    entries += [
        TreeEntry(path.encode(), "file", 0o644, hashlib.sha256(content).digest()) for path, content in files.items()
    ]
    return [entry for entry in entries if IGNORED_NAMES.isdisjoint(PurePosixPath(entry.path.decode()).parts)]


def digest_of_files(files: Mapping[str, bytes]) -> str:
    """Digest of a fresh tree of these files: equal to `Sandbox.tree_digest` before any command."""
    return digest_of_entries(entries_of_files(files))


def check_relative_path(path: str) -> PurePosixPath:
    """The path, if it names something beneath the tree's root by its text alone.

    Raises:
        ValueError: it is empty, absolute, holds `..` or a NUL, or is not in its normal form.
    """
    pure = PurePosixPath(path)
    if not path or pure.is_absolute() or ".." in pure.parts or "\0" in path or str(pure) != path or path == ".":
        raise ValueError(f"{path!r} is no path inside the work tree: give a relative POSIX path without '..' or '//'")
    return pure
