"""Processes whose clock jumps, by libfaketime: a file says how far off the time of day is; monotonic clocks go on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")


@dataclass
class JumpingClock:
    """The clock of all processes that are started with `environment`."""

    file: Path
    """Holds the offset."""

    def jump(self, offset_s: int) -> None:
        """From now on the time of day is off by so many seconds, within a tenth of one."""
        draft = self.file.with_suffix(".new")
        draft.write_text(f"{offset_s:+d}\n")
        draft.replace(self.file)

    def environment(self) -> Mapping[str, str]:
        """What makes a process obey.

        Raises:
            AssertionError: libfaketime is not installed.
        """
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }


def library() -> Path:
    """The library for programs with threads.

    Raises:
        AssertionError: it is not installed.
    """
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    assert found, "the clock cannot jump without libfaketime: run scripts/install-debian-packages (package faketime)"
    return found[0]


def forget_shared_memory(before: set[str]) -> None:
    """Removes what killed processes with this library leave behind."""
    for path in SHARED_MEMORY.iterdir():
        if "faketime_" in path.name and path.name not in before:
            path.unlink(missing_ok=True)


def shared_memory() -> set[str]:
    """What the library has there now."""
    return {name for name in os.listdir(SHARED_MEMORY) if "faketime_" in name}
