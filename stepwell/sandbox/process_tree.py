"""Processes below one, how deep they are in PID namespaces, and their ends."""

import asyncio
import contextlib
import os
import subprocess
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """All processes below one that are there."""
    found: list[int] = []
    pending = [pid]
    while pending:
        current = pending.pop()
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            for task in Path(f"/proc/{current}/task").iterdir():
                pending += map(int, (task / "children").read_text().split())
        found.append(current)
    return found[1:]


def depth_of(pid: int) -> int:
    """How many PID namespaces a process is in; 0 if it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return len(line.split()) - 1
    return 0


async def ends_within(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """True once the process has ended, False if it has not within the time."""
    if process.poll() is not None:
        return True
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    descriptor = os.pidfd_open(process.pid)
    loop.add_reader(descriptor, ended.set)
    try:
        async with asyncio.timeout(timeout_s):
            await ended.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return True
