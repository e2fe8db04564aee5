"""What the three embedded servers have in common."""

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import Protocol

from workers.services.errors import ServiceError
from workers.services.plan import Launch
from workers.services.settings import ServiceName


class EmbeddedService(Protocol):
    """One server of a home, with the settings of that home."""

    @property
    def name(self) -> ServiceName:
        """Which one it is."""
        ...

    def check(self) -> None:
        """Looks at program and data before anything starts.

        Raises:
            ServiceError: it could not start: what was found and what to do.
        """
        ...

    def prepare(self) -> None:
        """Makes what must lie on disk before the server starts; nothing the second time."""
        ...

    def launch(self) -> Launch:
        """How the supervisor runs it."""
        ...

    def make_ready(self) -> None:
        """Uses the server as its clients will, and makes what they expect there: roles, bucket, namespace.

        Raises:
            NotReadyError: it does not answer yet.
        """
        ...

    def version(self) -> str:
        """Version of the program."""
        ...

    def address(self) -> str:
        """Where it is, without passwords."""
        ...


def program(name: str, package: str) -> Path:
    """Path of a program that a wheel puts beside the interpreter, else of one in PATH.

    Raises:
        ServiceError: there is none.
    """
    beside = Path(sys.executable).with_name(name)
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which(name)
    if found is None:
        raise ServiceError(
            f"the program `{name}` is missing: neither {beside} nor one in PATH. Install it: `pip install {package}`."
        )
    return Path(found)


def size_bytes(path: Path) -> int:
    """Space that a folder takes on the disk, in bytes; 0 if there is none."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(FileNotFoundError):  # the server removes files while we count
                total += (Path(folder) / name).stat().st_blocks * 512
    return total
