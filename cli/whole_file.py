"""Files that are written whole or not at all."""

import os
import tempfile
from pathlib import Path


class CannotWrite(OSError):
    """A file cannot be written where it was asked for."""


def write_whole(path: Path, text: str, option: str) -> None:
    """Writes a file, whole or not at all; one that is there is replaced.

    Args:
        path: Where it goes.
        text: What is in it.
        option: That named the place, for the message.

    Raises:
        CannotWrite: the file system refuses.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        partial = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            partial.chmod(0o644)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror}; choose another place with {option}") from error
