"""The files of a folder, unpacked: each as a path and its bytes, or as what could not be opened and why.

Links are not followed, nothing is executed or unpickled, and nothing unpacks to more than `LARGEST_BYTES`.
"""

import bz2
import fnmatch
import gzip
import importlib
import io
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, cast

from stepwell.ptb.contamination.rows import Unscanned

LARGEST_BYTES = 1 << 30
"""Of one file, unpacked. A larger one is not scanned, and counted as such."""
DEEPEST = 3
"""Archives in archives."""
LARGEST_MEMBERS = 100_000
"""Of one archive."""

_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError, NotImplementedError)
"""What a broken, encrypted or cut-off archive raises."""
_COMPRESSED = ((b"\x1f\x8b", ".gz"), (b"BZh", ".bz2"), (b"\xfd7zXZ\x00", ".xz"), (b"\x28\xb5\x2f\xfd", ".zst"))
_ZIP = b"PK\x03\x04"
_TAR_AT, _TAR = 257, b"ustar"


@dataclass(frozen=True)
class Content:
    """One file."""

    path: str
    """From the folder; a member of an archive as `archive.zip!member`, without the ending of a compression."""
    data: bytes
    """Unpacked."""


class _Arrow(Protocol):
    def CompressedInputStream(self, stream: io.BytesIO, compression: str) -> IO[bytes]: ...  # pyarrow's name


def contents_of(root: Path, exclude: Sequence[str] = ()) -> Iterator[Content | Unscanned]:
    """Everything under a folder, in the order of the names; of a file, the file.

    Args:
        root: Folder or file.
        exclude: Patterns of paths that are passed over, and counted.

    Raises:
        FileNotFoundError: there is no `root`.
    """
    if not root.exists():
        raise FileNotFoundError(f"{root} does not exist: name the folder or the file that is to be checked")
    if not root.is_dir():
        yield from _opened(root, root.name)
        return
    for path in _walk(root):
        name = path.relative_to(root).as_posix()
        if any(fnmatch.fnmatch(name, pattern) for pattern in exclude):
            yield Unscanned(name, "excluded by the caller")
        else:
            yield from _opened(path, name)


def _walk(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path))
        else:
            yield Path(entry.path)


def _opened(path: Path, name: str) -> Iterator[Content | Unscanned]:
    try:
        kind = path.lstat()
        if stat.S_ISLNK(kind.st_mode):
            yield Unscanned(name, "a link, not followed")
            return
        if not stat.S_ISREG(kind.st_mode):
            yield Unscanned(name, "neither a file nor a folder")
            return
        if is_weights(name):
            yield Unscanned(name, "weights of a model")
            return
        if kind.st_size > LARGEST_BYTES:
            yield Unscanned(name, f"larger than {LARGEST_BYTES >> 20} MiB")
            return
        data = path.read_bytes()
    except OSError as error:
        yield Unscanned(name, f"cannot be read: {error.strerror}")
        return
    yield from _unpacked(name, data, 0)


def is_weights(name: str) -> bool:
    """Whether a name is one of tensors, which hold no text."""
    return name.endswith((".safetensors", ".gguf")) or (name.endswith(".bin") and "model" in name.rsplit("/", 1)[-1])


def _unpacked(name: str, data: bytes, depth: int) -> Iterator[Content | Unscanned]:
    packing = next((ending for magic, ending in _COMPRESSED if data.startswith(magic)), None)
    is_tar = data[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR
    if packing is None and not is_tar and not data.startswith(_ZIP):
        yield Content(name, data)
        return
    if depth == DEEPEST:
        yield Unscanned(name, f"packed more than {DEEPEST} times")
        return
    try:
        if packing is not None:
            inner = _decompressed(packing, data)
            yield from _unpacked(name.removesuffix(packing), inner, depth + 1)
        elif is_tar:
            yield from _tar_members(name, data, depth)
        else:
            yield from _zip_members(name, data, depth)
    except _TooLarge:
        yield Unscanned(name, f"unpacks to more than {LARGEST_BYTES >> 20} MiB")
    except ImportError:
        yield Unscanned(name, "zstd, which needs pyarrow: pip install 'stepwell[ptb]'")
    except _BROKEN:
        yield Unscanned(name, "cannot be unpacked: broken or cut off")
    except RuntimeError:  # what zipfile raises for a member under a password
        yield Unscanned(name, "cannot be unpacked: encrypted")


class _TooLarge(Exception):
    """Unpacks to more than is read."""


def _decompressed(packing: str, data: bytes) -> bytes:
    source = io.BytesIO(data)
    if packing == ".zst":
        arrow = cast(_Arrow, importlib.import_module("pyarrow"))
        stream = arrow.CompressedInputStream(source, "zstd")
    else:
        stream = cast(IO[bytes], {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[packing](source, "rb"))
    with stream:
        return _bounded(stream)


def _bounded(stream: IO[bytes]) -> bytes:
    pieces, total = list[bytes](), 0
    while piece := stream.read(1 << 20):
        total += len(piece)
        if total > LARGEST_BYTES:
            raise _TooLarge
        pieces.append(piece)
    return b"".join(pieces)


def _tar_members(name: str, data: bytes, depth: int) -> Iterator[Content | Unscanned]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for number, member in enumerate(archive):
            if number == LARGEST_MEMBERS:
                yield Unscanned(name, f"more than {LARGEST_MEMBERS} members")
                return
            if (file := archive.extractfile(member) if member.isfile() else None) is not None:
                yield from _member(f"{name}!{member.name}", file, depth)


def _zip_members(name: str, data: bytes, depth: int) -> Iterator[Content | Unscanned]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        for member in members[:LARGEST_MEMBERS]:
            with archive.open(member) as file:
                yield from _member(f"{name}!{member.filename}", file, depth)
        if len(members) > LARGEST_MEMBERS:
            yield Unscanned(name, f"more than {LARGEST_MEMBERS} members", len(members) - LARGEST_MEMBERS)


def _member(name: str, file: IO[bytes], depth: int) -> Iterator[Content | Unscanned]:
    if is_weights(name):
        yield Unscanned(name, "weights of a model")
    else:
        yield from _unpacked(name, _bounded(file), depth + 1)
