"""How Apptainer is run: in a PID namespace that dies with the thread that started it, with nothing of the host's."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from stepwell.sandbox.apptainer_image import PROBE, ImageInside, parse_probe
from stepwell.sandbox.bwrap_program import find_bwrap, without_namespaces
from stepwell.sandbox.guest_bundle import MOUNTED_AT, GuestBundle, write_guest_bundle
from stepwell.sandbox.images import INSTALL, ImageError, find_apptainer
from stepwell.sandbox.protocol import SandboxError

PROBE_TIMEOUT_S = 300.0

_CONFIGURATION = """\
# Nothing of the host's is mounted or written into: what there is comes from the image, `bwrap` or the command line.
config passwd = no
config group = no
config resolv_conf = no
mount proc = yes
mount sys = no
mount dev = yes
mount home = no
mount tmp = no
mount hostfs = no
user bind control = yes
enable overlay = yes
enable underlay = yes
mount slave = no
"""


class ApptainerOutside:
    """Apptainer with its configuration, and our own programs for inside.

    Args:
        apptainer: The program.
        folder: Holds the configuration, and what Apptainer caches.
        bundle: Is mounted in each image.
    """

    def __init__(self, apptainer: Path, folder: Path, bundle: GuestBundle) -> None:
        self._apptainer = apptainer
        self._folder = folder
        self.bundle = bundle
        """Our own programs."""

    @classmethod
    def prepare(cls, folder: Path, imports: Sequence[str] = ()) -> "ApptainerOutside":
        """Lays out in `folder` what goes into each image.

        Args:
            folder: Exists.
            imports: Names of modules that programs of the caller's import inside, beside those of `guest_init`.

        Raises:
            SandboxError: a program is missing, or the interpreter cannot be bundled.
            OSError: the disk failed.
        """
        try:
            apptainer = find_apptainer()
        except ImageError as error:
            raise SandboxError(str(error)) from error
        missing = [program for program in ("squashfuse_ll", "setpriv", "unshare") if shutil.which(program) is None]
        if missing:
            raise SandboxError(f"no {' and no '.join(missing)} on the path: {INSTALL}")
        (folder / "apptainer").mkdir()
        (folder / "apptainer.conf").write_text(_CONFIGURATION)
        return cls(apptainer, folder, write_guest_bundle(folder / "bundle", find_bwrap(), imports))

    def command(self) -> list[str]:
        """All up to the image's path, or further options of `apptainer exec`."""
        command = ["setpriv", "--pdeathsig", "KILL", "--", "unshare"]
        if os.geteuid() != 0:  # as root of a namespace he has what root has in the image, and can change it in the tree
            command += ["--user", "--map-root-user"]
        command += ["--pid", "--mount", "--mount-proc", "--fork", "--kill-child", "--"]
        command += [str(self._apptainer), "--quiet", "--config", str(self._folder / "apptainer.conf")]
        command += ["exec", "--userns", "--cleanenv", "--cwd", "/", "--no-mount", "home,tmp,cwd,bind-paths"]
        return [*command, *bind(self.bundle.folder, MOUNTED_AT, "ro")]

    def environment(self) -> dict[str, str]:
        """Of Apptainer: it keeps what it caches in the folder, and its programs are found on the path."""
        own = str(self._folder / "apptainer")
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": own, "TMPDIR": own, "APPTAINER_CONFIGDIR": own}

    def look_into(self, image: Path, work: str, hidden: Sequence[str] = ()) -> ImageInside:
        """What has to be known of an image before a sandbox starts in it.

        Args:
            image: A SIF or an unpacked root.
            work: Where the work tree is to be.
            hidden: Paths that are to be hidden.

        Raises:
            SandboxError: there is none, or it does not start.
        """
        if not image.exists():
            raise SandboxError(f"no image {image}: fetch or build it, or correct its path")
        done = subprocess.run(
            [*self.command(), str(image), *self.bundle.python, "-c", PROBE, work, *hidden],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=self.environment(),
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode != 0:
            raise SandboxError(explain(said or f"the image {image} ended with status {done.returncode}"))
        try:
            return parse_probe(done.stdout, hidden=len(hidden))
        except ValueError as error:
            raise SandboxError(explain(f"{error}; {said}")) from error


def bind(source: Path, target: str, *options: str) -> list[str]:
    """Options of Apptainer that show something of the host's inside."""
    return ["--bind", ":".join((str(source), target, *options))]


def explain(said: str) -> str:
    """What failed and what to do, from what was said instead of a greeting."""
    lowered = said.lower()
    advice = without_namespaces(said)
    if advice is None and "overlay" in lowered:
        advice = (
            "give a root on a disk that can carry an overlay's upper layer, such as ext4 or xfs, not itself an overlay"
        )
    elif advice is None and "fuse" in lowered:
        advice = "let this user open /dev/fuse, and see that squashfuse is installed"
    elif advice is None:
        advice = "run `apptainer exec --userns IMAGE true` by hand to see whether the image works on this machine"
    return f"no sandbox could be started: {said}; {advice}"
