"""Runs a command in a sandbox until it ends or never will: `python -I -S -c <this> CPU_S LOOKS COMMAND…`.

A wall clock cannot tell a defect that never ends from a machine that has other things to do, and would find other
tasks on a busy machine. So what counts is what the command's processes use and whether they can run at all. It is
killed when they have used more than `CPU_S` seconds of processor, and when at `LOOKS` looks in a row none of them could
run nor had run since the look before: each waits for what none will do. A process that no processor has time for can
run, and so is never taken for one that waits.

Ends with the command's own status, or with `STUCK` and a line on standard output that says why. Nothing else may run in
the sandbox but its first process.
"""

from __future__ import annotations

import os
import select
import signal
import sys

LOOK_S = 0.1
STUCK = 125
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def numbers(folder: str, own: tuple[str, str]) -> list[str]:
    """Names of processes or threads in a folder of /proc, without the sandbox's first process and this one."""
    try:
        return [name for name in os.listdir(folder) if name.isdecimal() and name not in own]
    except FileNotFoundError:
        return []


def text(path: str) -> str:
    """A file of /proc; empty if what it is about has ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def look() -> tuple[float, str, list[str]]:
    """Seconds of processor of all processes, the state of each thread, and how often each has run."""
    ticks, states = 0, ""
    ran: list[str] = []
    own = ("1", str(os.getpid()))
    for process in numbers("/proc", own):
        fields = text(f"/proc/{process}/stat").rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
        for thread in numbers(f"/proc/{process}/task", ("", "")):
            said = dict(line.split(":", 1) for line in text(f"/proc/{process}/task/{thread}/status").splitlines())
            states += said.get("State", "").strip()[:1]
            ran.append(f"{thread} {said.get('voluntary_ctxt_switches')} {said.get('nonvoluntary_ctxt_switches')}")
    return ticks * TICK_S, states, sorted(ran)


def waits(states: str, ran: list[str], before: list[str]) -> bool:
    """Whether no thread can run, or is at the disk, and none ran since the look before."""
    return not {"R", "D"} & set(states) and ran == before


def stop(pid: int, reason: str) -> None:
    """Kills the command, and ends."""
    os.kill(pid, signal.SIGKILL)
    sys.stdout.write(reason)
    sys.exit(STUCK)


def main() -> None:
    """Runs the command that the arguments name."""
    cpu_s, looks, command = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    pid = os.posix_spawnp(command[0], command, os.environ)
    ended = os.pidfd_open(pid)
    before: list[str] = []
    still = 0
    while not select.select([ended], [], [], LOOK_S)[0]:
        used_s, states, ran = look()
        still = still + 1 if waits(states, ran, before) else 0
        before = ran
        if used_s > cpu_s:
            stop(pid, f"it used more than {cpu_s:g} s of processor")
        if still >= looks:
            stop(pid, "it waits for what never comes")
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
