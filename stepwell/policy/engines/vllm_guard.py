"""Runs a command so that nothing of it outlives this process's parent: `vllm_guard.py FOLDER COMMAND…`.

vLLM's server starts processes of its own, which a SIGKILL of the server would orphan, and leaves files behind. This
small process stands between: it dies with its parent (parent-death signal), adopts what the command orphans
(subreaper), and when the command ends, or SIGTERM or SIGINT comes, ends the command's whole process group and removes
FOLDER, the command's private temporary folder. Should it be killed itself, FOLDER stays, with the group's number in the
file `group`: whoever started it ends the group by that. It exits with the command's status, or 128 plus its signal.

Run by path, with the standard library alone: it must start at once and hold little memory.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from types import FrameType

GROUP_FILE = "group"

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_GRACE_S = 3.0  # for the group to end by itself; the resource tracker in it frees shared memory meanwhile
_POLL_S = 0.05

_libc = ctypes.CDLL(None, use_errno=True)


def main(folder: str, command: list[str]) -> int:
    """Runs `command` to its end, or until a signal, and cleans up. Returns the exit status."""
    asked_to_stop = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked_to_stop
        asked_to_stop = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    parent = os.getppid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = subprocess.Popen(command, start_new_session=True, preexec_fn=_die_with_parent)
    with open(os.path.join(folder, GROUP_FILE), "w") as group:
        group.write(str(child.pid))
    while child.poll() is None and not asked_to_stop and os.getppid() == parent:
        time.sleep(_POLL_S)
    _end_group(child)
    shutil.rmtree(folder, ignore_errors=True)
    status = child.wait()
    return status if status >= 0 else 128 - status


def _die_with_parent() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) failed")


def _end_group(leader: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the leader's group, SIGKILL to what is left after the grace, in the group or adopted; reaps it all."""
    until = time.monotonic() + _GRACE_S
    _signal_group(leader.pid, signal.SIGTERM)
    while _reap(leader) and time.monotonic() < until:
        time.sleep(_POLL_S)
    _signal_group(leader.pid, signal.SIGKILL)
    while _reap(leader):
        for child in _children():  # one that left the group: each orphan of theirs is adopted in turn
            _signal(child, signal.SIGKILL)
        time.sleep(_POLL_S)


def _children() -> list[int]:
    """Processes whose parent this is, adopted ones included."""
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as status:
                after_command = status.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(after_command[1]) == os.getpid():
            found.append(int(name))
    return found


def _signal(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def _reap(leader: subprocess.Popen[bytes]) -> bool:
    """Reaps what has ended; True while a child, own or adopted, is left."""
    leader.poll()
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
