"""Becomes a server: ties its life to its parent's, takes an unprivileged identity if told so, then executes it.

    python -I -S launcher.py SPEC        SPEC: JSON {"parent", "death_signal", "identity", "argv"}

A program of its own, on the standard library alone, since code between fork and exec is unsafe in a process with
threads. `identity` is null, or {"mode": "namespace" | "setuid", "uid", "gid"}. PostgreSQL refuses to run as root. In a
user namespace root is seen as that uid and stays owner of its files, so no folder's mode has to be opened; setuid is
for machines that give root no user namespace.
"""

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1
CANNOT_LAUNCH = 126
AS_USUAL = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that a shell ignores for what it runs in the background, and that Python ignores: ignoring is inherited."""


def enter_user_namespace(libc: ctypes.CDLL, uid: int, gid: int) -> None:
    """Shows this process as `uid` and `gid` to itself; to the files it stays who it is."""
    outer_uid, outer_gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"no user namespace: {os.strerror(error)}")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {outer_uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {outer_gid} 1")


def main() -> int:
    """Does not return when all goes well: the process is then the server."""
    spec = json.loads(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        if (identity := spec["identity"]) is not None:
            if identity["mode"] == "namespace":
                enter_user_namespace(libc, identity["uid"], identity["gid"])
            else:
                os.setgroups([])
                os.setgid(identity["gid"])
                os.setuid(identity["uid"])
        # After the change of identity, which clears it; and before the look at the parent, which may be gone already.
        libc.prctl(PR_SET_PDEATHSIG, spec["death_signal"])
        if os.getppid() != spec["parent"]:
            return CANNOT_LAUNCH
        for number in AS_USUAL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execv(spec["argv"][0], spec["argv"])
    except OSError as error:
        sys.stderr.write(f"cannot launch {spec['argv'][0]}: {error}\n")
    return CANNOT_LAUNCH


if __name__ == "__main__":
    sys.exit(main())
