"""Which process a supervisor is: a pid alone may have been given to another one since, here or on another machine."""

import os
import signal
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class HostProcess(BaseModel):
    """A process, told apart from a later one with the same pid, after a boot, or in another container."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    start_ticks: int
    """Clock ticks from the boot to its start, as in field 22 of /proc/PID/stat."""
    boot_id: str
    """Of the kernel that it runs on."""
    pid_namespace: str
    """In which the pid is its number."""

    def alive(self) -> bool:
        """Whether exactly this process still runs; a zombie does not. False from another machine or container too."""
        return host_process(self.pid) == self

    def send(self, signal_number: signal.Signals) -> None:
        """Sends a signal, unless the process has ended."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.alive():  # what the descriptor holds cannot become another process from here on
                signal.pidfd_send_signal(descriptor, signal_number)
        except ProcessLookupError:
            return
        finally:
            os.close(descriptor)


def host_process(pid: int) -> HostProcess | None:
    """The process that has this pid now; None if there is none, or only a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name in parentheses may hold spaces
    if fields[0] in "ZX":
        return None
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return HostProcess(
        pid=pid, start_ticks=int(fields[19]), boot_id=boot_id, pid_namespace=os.readlink("/proc/self/ns/pid")
    )
