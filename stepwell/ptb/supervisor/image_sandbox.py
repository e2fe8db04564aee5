"""The sandbox of an agent whose system is an image: Apptainer mounts it, `bwrap` isolates in it, as in the other kind.

Everything of the agent's is bound into the image by Apptainer, which makes the places for it, and then by `bwrap`,
which makes read-only whatever is not the agent's to write.
"""

from pathlib import Path

from stepwell.ptb.supervisor.host_folder import HostFolder
from stepwell.ptb.supervisor.order import HOME, AgentOrder
from stepwell.ptb.supervisor.sandbox import INSIDE, AgentSandbox, guest_command, with_home
from stepwell.sandbox.apptainer_outside import ApptainerOutside, bind
from stepwell.sandbox.bwrap_program import ISOLATION

_GUEST_IMPORTS = ("signal", "socket")
"""Of `agent_guest`."""
_OF_OTHER_SANDBOXES = frozenset({"PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"})
"""Fixed where the same command must always print the same."""


def image_sandbox(order: AgentOrder, folder: HostFolder, image: Path) -> AgentSandbox:
    """A sandbox that sees an image's system.

    Raises:
        SandboxError: no Apptainer, or the image does not start.
        OSError: the disk is full, or failed.
    """
    folder.system.mkdir()
    outside = ApptainerOutside.prepare(folder.system, _GUEST_IMPORTS)
    inside = outside.look_into(image, order.work_at)
    etc = folder.system / "etc"
    inside.write_etc(etc)
    with_home(etc / "passwd")
    command = outside.command()
    for name in ("passwd", "group", "hosts"):
        command += bind(etc / name, f"/etc/{name}", "ro")
    command += [*bind(folder.inside, INSIDE, "ro"), *bind(folder.tmp, "/tmp")]
    command += [*bind(Path(order.home or folder.home), HOME), *bind(Path(order.work), order.work_at)]
    for mount in order.mounts:
        command += bind(Path(mount.source), mount.at, "ro")
    command += [str(image), *outside.bundle.bwrap, *ISOLATION, "--clearenv", "--ro-bind", "/", "/"]
    command += ["--proc", "/proc", "--dev", "/dev", "--size", str(order.limits.shared_memory_bytes)]
    command += ["--tmpfs", "/dev/shm"]
    for writable in ("/tmp", HOME, order.work_at):
        command += ["--bind", writable, writable]
    for mount in order.mounts:  # once more: one may lie in what is writable
        command += ["--ro-bind", mount.at, mount.at]
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    command += [*outside.bundle.python, *guest_command(order)]
    system = {name: value for name, value in inside.environment.items() if name not in _OF_OTHER_SANDBOXES}
    return AgentSandbox(tuple(command), system, outside.environment())
