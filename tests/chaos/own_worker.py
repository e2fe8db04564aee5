"""A worker that a test starts itself: nobody else watches it, so that it can be stopped and let go again."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.launch import QUIET_THREADS


@contextmanager
def own_worker(home: Path, log: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """`stepwell worker` with some arguments, for the block; it dies with pytest."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", "worker", *arguments, "--parent", str(os.getpid())],
            env=QUIET_THREADS | {**os.environ, "STEPWELL_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
