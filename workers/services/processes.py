"""Which process a pid is: a pid alone may have been given to another one since."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessId:
    """A process, told apart from a later one with the same pid."""

    pid: int
    start_ticks: int
    """Clock ticks from the boot to its start, as in field 22 of /proc/PID/stat."""

    def alive(self) -> bool:
        """Whether exactly this process still runs; a zombie does not."""
        return process_id(self.pid) == self

    def send(self, signal_number: int) -> None:
        """Sends a signal, unless the process has ended."""
        if self.alive():
            try:
                os.kill(self.pid, signal_number)
            except ProcessLookupError:
                return

    def wait_gone(self, timeout_s: float) -> bool:
        """Whether it ended within `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def end(self, timeout_s: float) -> None:
        """Waits for it to end by itself, then kills it."""
        if not self.wait_gone(timeout_s):
            self.send(signal.SIGKILL)
            self.wait_gone(5.0)


def process_id(pid: int) -> ProcessId | None:
    """The process that has this pid now; None if there is none, or only a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name in parentheses may hold spaces
    return None if fields[0] in "ZX" else ProcessId(pid, int(fields[19]))
