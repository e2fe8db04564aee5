"""A harness as a process: bounded in time and output, and never longer alive than who runs it."""

import asyncio
import sys
import time
from pathlib import Path

import psutil

from workers.harness import run_harness


async def test_a_harness_dies_with_who_runs_it(tmp_path: Path) -> None:
    program = (
        "import asyncio, pathlib, sys\n"
        "from workers.harness import run_harness\n"
        "argv = [sys.executable, '-c', 'import os, time; print(os.getpid(), flush=True); "
        'open("pid", "w").write(str(os.getpid())); time.sleep(600)\']\n'
        "asyncio.run(run_harness(argv, environment={}, folder=pathlib.Path(sys.argv[1]), stdin=b'', timeout_s=600))\n"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(tmp_path))
    harness = psutil.Process(await asyncio.to_thread(_pid_in, tmp_path / "pid"))
    parent.kill()
    await parent.wait()
    harness.wait(timeout=30)


def _pid_in(path: Path) -> int:
    """What the file says, once it says something."""
    for _ in range(1200):
        if path.exists() and (text := path.read_text()):
            return int(text)
        time.sleep(0.05)
    raise AssertionError("the harness did not start within a minute")


async def test_a_harness_is_stopped_at_its_deadline(tmp_path: Path) -> None:
    sleeper = "import time; time.sleep(600)"
    end = await run_harness(
        [sys.executable, "-c", sleeper], environment={}, folder=tmp_path, stdin=b"y" * (1 << 20), timeout_s=1.0
    )
    assert (end.timed_out, end.returncode) == (True, -9)


async def test_the_last_words_of_a_harness_are_kept(tmp_path: Path) -> None:
    talk = "import sys; print('x' * 200_000); print(sys.stdin.read()); sys.exit(5)"
    end = await run_harness(
        [sys.executable, "-c", talk], environment={}, folder=tmp_path, stdin=b"last", timeout_s=240.0
    )
    assert (end.timed_out, end.returncode) == (False, 5)
    assert end.output.endswith("xxx\nlast\n")
    assert len(end.output) == 1 << 16
