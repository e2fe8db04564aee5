"""Commands as a user who is not root and owns nothing here, on a machine where the tests are root's.

What such a user could not enter because it lies in a folder of root's alone, the interpreter for one, is shown to him
in a mount namespace of his own: nothing changes for anybody else, and the mounts go with the last of his processes.
"""

import os
import pwd
import shlex
import stat
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

NOBODY = pwd.getpwnam("nobody")


def as_nobody(command: Sequence[str], shown: Sequence[Path]) -> list[str]:
    """The command, as the user `nobody` without further groups; it dies with the calling thread.

    Args:
        command: Program and arguments.
        shown: Folders that he is to read.
    """
    drop = ["setpriv", "--reuid", str(NOBODY.pw_uid), "--regid", str(NOBODY.pw_gid), "--clear-groups"]
    drop += ["--inh-caps=-all", "--bounding-set=-all", "--pdeathsig", "KILL", "--"]
    script = "\n".join(["set -eu", *_lines_that_show(shown), 'cd "$PWD"', shlex.join(["exec", *drop, *command])])
    return ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--mount", "--", "sh", "-c", script]


def _lines_that_show(shown: Sequence[Path]) -> list[str]:
    """Commands that put an empty folder in place of each that he may not enter, and in it only what is shown."""
    hidden: defaultdict[Path, list[Path]] = defaultdict(list)
    for folder in {path.resolve() for path in shown}:
        closed = [parent for parent in (*reversed(folder.parents), folder) if not parent.stat().st_mode & stat.S_IXOTH]
        if closed:
            hidden[closed[0]].append(folder)
    lines: list[str] = []
    for cover, folders in hidden.items():
        inner = sorted(folder for folder in folders if not any(other in folder.parents for other in folders))
        lines += [f"exec {number}<{shlex.quote(str(folder))}" for number, folder in enumerate(inner, 3)]
        lines.append(f"mount -t tmpfs -o mode=755 none {shlex.quote(str(cover))}")
        for number, folder in enumerate(inner, 3):
            place = shlex.quote(str(folder))
            lines += [f"mkdir -p {place}", f"mount --no-canonicalize --bind /proc/self/fd/{number} {place}"]
            lines.append(f"exec {number}<&-")
    return lines


def give_to_nobody(folder: Path) -> None:
    """Makes a folder his."""
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
