"""A disk of a test's own, small enough to be filled: a tmpfs that can be made larger while it is in use."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BALLAST = "ballast"


@dataclass
class SmallDisk:
    """One mounted disk."""

    folder: Path
    size_mib: int

    def fill(self) -> None:
        """Takes the last byte."""
        with (self.folder / BALLAST).open("ab", buffering=0) as ballast:
            for chunk in (1 << 20, 4 << 10):
                try:
                    while True:
                        ballast.write(bytes(chunk))
                except OSError:
                    continue  # full, for chunks of this size

    def grow(self, size_mib: int) -> None:
        """Makes it larger, as an operator does who adds space."""
        _mount("-o", f"remount,size={size_mib}m", str(self.folder))
        self.size_mib = size_mib


@contextmanager
def small_disk(folder: Path, size_mib: int) -> Iterator[SmallDisk]:
    """Mounts a disk on a folder, which is made; unmounted after the block."""
    assert os.geteuid() == 0, "a small disk is a tmpfs, and mounting needs root: run the tests as root"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size_mib}m,mode=0700", "tmpfs", str(folder))
    try:
        yield SmallDisk(folder, size_mib)
    finally:
        _unmount(folder)


def _unmount(folder: Path) -> None:
    """Waits for servers that are just ending: they keep the disk busy."""
    deadline = time.monotonic() + 30
    while (done := subprocess.run(["umount", str(folder)], capture_output=True, text=True, check=False)).returncode:
        assert time.monotonic() < deadline, f"umount {folder}: {done.stderr.strip()}"
        time.sleep(0.2)


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"mount {' '.join(arguments)}: {done.stderr.strip()}"
