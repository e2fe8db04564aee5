"""How a process of ours dies: with its parent, by construction, and cleanly on SIGTERM."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

PR_SET_PDEATHSIG = 1


class OrphanError(RuntimeError):
    """The process was started for a parent that is gone already."""


def die_with_parent(parent: int) -> None:
    """Asks the kernel to end this process when `parent` ends. Linux only.

    Raises:
        OrphanError: the parent ended before it could be asked.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        raise OrphanError(f"parent {parent} is gone")


def on_stop_signals(stop: Callable[[], object]) -> None:
    """Calls `stop` in the running loop on SIGTERM and SIGINT."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


def leave(status: int) -> NoReturn:
    """Ends the process without Python's finalisers: temporalio's threads may abort in them (status 134), after all
    work is done; a worker's exit status must not hang on that."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
