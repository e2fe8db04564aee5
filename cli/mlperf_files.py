"""Files that the benchmark's verbs read and write, with errors that say what to do."""

from pathlib import Path


class UnusableFile(OSError):
    """A file that cannot be read, or not be written."""


def read_text(path: Path) -> str:
    """Contents of a log.

    Raises:
        UnusableFile: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise UnusableFile(f"{path} cannot be read: {error.strerror}") from None


def write_text(path: Path, text: str) -> None:
    """Writes a log.

    Raises:
        UnusableFile: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UnusableFile(f"{path} cannot be written: {error.strerror}; name another with --out") from None
