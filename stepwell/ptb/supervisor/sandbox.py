"""The sandbox of an agent, as a command: this machine's system read-only, the agent's folders writable, no network.

Like the sandboxes of `stepwell.sandbox.bubblewrap` but for its life, its folders, which are bound and not overlaid, and
/tmp, which is on disk: what trains models writes more than a sandbox of tests.
"""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stepwell.ptb.supervisor import agent_guest
from stepwell.ptb.supervisor.host_folder import HostFolder
from stepwell.ptb.supervisor.order import HOME, AgentOrder, Mount
from stepwell.sandbox import guest_init
from stepwell.sandbox.bwrap_program import ISOLATION, find_bwrap
from stepwell.sandbox.system import describe_system

INSIDE = "/opt/agent"
"""Where our own things are inside: `bin/timer`, `clock/remaining_s`, the first process."""
PROXY_PORT = 3128
"""Where the network begins inside, at 127.0.0.1."""

_TIMER = f"""\
#!/bin/sh
# Prints the working time that remains, as the supervisor last wrote it.
read -r left < {INSIDE}/clock/remaining_s || exit 1
if [ "$left" -le 0 ]; then
    echo 'Timer expired!'
else
    printf 'Remaining time (hours:minutes):\\n%d:%02d\\n' $((left / 3600)) $((left % 3600 / 60))
fi
"""
_HOME_OF_OTHERS = "/tmp/home"
"""In the tables that sandboxes of other kinds have."""
_OF_THE_SYSTEM = ("PATH", "LD_LIBRARY_PATH")
"""The second is of our interpreter, where that needs it."""
_TRUSTED_AUTHORITIES = ("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted")
"""Where distributions keep whom TLS trusts."""
_BOOT = f"import sys; sys.path.insert(0, '{INSIDE}/guest'); from {agent_guest.__name__} import main; main()"


def python_environment() -> tuple[Mount, ...]:
    """This process's own Python with all that is installed for it, at its own path, for agents that train here.

    What is installed in editable form is not in it.
    """
    prefixes = [Path(sys.prefix), Path(sys.base_prefix)]
    return tuple(
        Mount(source=str(prefix), at=str(prefix))
        for prefix in dict.fromkeys(prefixes)
        if not prefix.is_relative_to("/usr")
    )


def lay_out(folder: HostFolder, order: AgentOrder) -> None:
    """Makes what lies in the folder before the sandbox starts.

    Raises:
        OSError: the disk is full, or failed.
    """
    for path in (folder.inside / "bin", folder.remaining.parent, folder.home, folder.tmp):
        path.mkdir(parents=True)
    folder.remaining.write_text(f"{int(order.budget.time_s)}\n")
    timer = folder.inside / "bin" / "timer"
    timer.write_text(_TIMER)
    timer.chmod(0o755)
    for module in (guest_init, agent_guest):
        target = folder.inside / "guest" / Path(*module.__name__.split(".")).with_suffix(".py")
        target.parent.mkdir(parents=True)
        shutil.copyfile(str(module.__file__), target)


@dataclass(frozen=True)
class AgentSandbox:
    """How an agent's sandbox is started."""

    command: tuple[str, ...]
    """The program outside and its arguments; no secret is among them. Process 1 inside is `agent_guest`."""
    system: Mapping[str, str]
    """What the system inside wants in the environment of commands."""
    outside: Mapping[str, str]
    """Environment of the program outside."""


def bubblewrap_sandbox(order: AgentOrder, folder: HostFolder) -> AgentSandbox:
    """A sandbox that sees this machine's system.

    Raises:
        SandboxError: no `bwrap`, or an interpreter is not where it should be.
        OSError: the disk is full, or failed.
    """
    folder.system.mkdir()
    system = describe_system(folder.system, libraries=())
    with_home(folder.system / "etc" / "passwd")
    environment = {name: value for name, value in system.environment if name in _OF_THE_SYSTEM}
    command = [str(find_bwrap()), *ISOLATION, "--clearenv", *system.mounts]
    for name, value in environment.items():
        command += ["--setenv", name, value]
    for trusted in filter(Path.is_dir, map(Path, _TRUSTED_AUTHORITIES)):
        (folder.system / trusted.relative_to("/")).mkdir(parents=True)
        command += ["--ro-bind", str(trusted), str(trusted)]
    command += ["--bind", str(folder.tmp), "/tmp", "--size", str(order.limits.shared_memory_bytes)]
    command += ["--tmpfs", "/dev/shm", "--ro-bind", str(folder.inside), INSIDE]
    command += ["--bind", order.home or str(folder.home), HOME, "--bind", order.work, order.work_at]
    for mount in order.mounts:
        command += ["--ro-bind", mount.source, mount.at]
    for device in order.devices:
        command += ["--dev-bind", device, device]
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    command += [system.python, "-I", "-S", *guest_command(order)]
    return AgentSandbox(tuple(command), environment, {})


def guest_command(order: AgentOrder) -> list[str]:
    """What follows an interpreter inside, to become the first process."""
    port = 0 if order.network.mode == "none" else PROXY_PORT
    return ["-c", _BOOT, order.work_at, str(port)]


def with_home(passwd: Path) -> None:
    """Tells a sandbox's table of users where the agent's home is."""
    passwd.write_text(passwd.read_text().replace(f":{_HOME_OF_OTHERS}:", f":{HOME}:"))


def agent_environment(order: AgentOrder, system: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """What the agent's commands find in their environment.

    Args:
        order: Whose variables prevail.
        system: What the system inside wants.
        secrets: Values by name.
    """
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        **system,
        "HOME": HOME,
        "USER": "agent",
        "LOGNAME": "agent",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": "/tmp",
        "PWD": order.work_at,
    }
    if order.network.mode != "none":
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            environment[name] = environment[name.lower()] = proxy
        environment["NO_PROXY"] = environment["no_proxy"] = "localhost,127.0.0.1,::1"
        environment["NODE_USE_ENV_PROXY"] = "1"  # Node's own fetch goes by the proxy only if told
    environment |= {**order.environment, **secrets}
    return environment | {"PATH": f"{INSIDE}/bin:{environment['PATH']}"}
