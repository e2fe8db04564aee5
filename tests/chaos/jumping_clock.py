"""Processes whose clock jumps: a small library, preloaded into them, shifts the time of day. Monotonic clocks go on."""

import os
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("jumping_clock.c")


class JumpingClock:
    """The clock of all processes that are started with `environment`.

    Args:
        folder: For the library and the offset.
    """

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        assert compiler, "the clock cannot jump without a C compiler: run scripts/install-debian-packages"
        self._library = folder / "jumping_clock.so"
        subprocess.run(
            [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", self._library, SOURCE],
            check=True,
            timeout=60,
        )
        self._offset = folder / "offset"
        self._offset.write_bytes(struct.pack("<q", 0))

    def jump(self, offset_s: int) -> None:
        """From this instant on the time of day is off by so many seconds."""
        with self._offset.open("r+b", buffering=0) as file:
            os.pwrite(file.fileno(), struct.pack("<q", offset_s), 0)

    def environment(self) -> Mapping[str, str]:
        """What makes a process obey."""
        return {"LD_PRELOAD": str(self._library), "JUMPING_CLOCK": str(self._offset)}
