"""Hosts of a test's own: network namespaces on one bridge, any of which can be cut off silently and joined again."""

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from workers.services.plan import launcher_argv

NOBODY = "02:00:00:00:00:01"
"""Hardware address that no interface has: packets to it are dropped, and nobody says so."""
_NUMBERS = itertools.count(os.getpid() % 200)


@dataclass
class Host:
    """One network namespace, with one interface to the others."""

    name: str
    port: str
    """Its end of the cable, at the bridge."""
    bridge: str
    address: str
    """Its IPv4 address."""
    processes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def command(self, argv: Sequence[str]) -> list[str]:
        """A command line that runs another on this host; it dies with this process."""
        return launcher_argv([_ip(), "netns", "exec", self.name, *argv], death_signal=signal.SIGKILL, identity=None)

    def start(
        self, argv: Sequence[str], output: IO[bytes], environment: Mapping[str, str] = os.environ
    ) -> "subprocess.Popen[bytes]":
        """Starts a process on this host; it ends with the hosts."""
        process = subprocess.Popen(
            self.command(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def call(self, argv: Sequence[str], environment: Mapping[str, str] = os.environ) -> None:
        """Runs a command on this host to its end.

        Raises:
            subprocess.CalledProcessError: it failed.
        """
        subprocess.run(self.command(argv), env=environment, check=True, timeout=120, stdout=subprocess.DEVNULL)

    def cut(self) -> None:
        """Takes the cable out at the bridge: the interface stays up, and every packet is lost without a word."""
        ip("link", "set", self.port, "nomaster")

    def join(self) -> None:
        """Puts the cable back."""
        ip("link", "set", self.port, "master", self.bridge)

    def lose(self, address: str) -> None:
        """Loses, without a word, what this host sends to one address."""
        self._call_ip("neigh", "replace", address, "lladdr", NOBODY, "nud", "permanent", "dev", "eth0")

    def find(self, address: str) -> None:
        """Sends to it again."""
        self._call_ip("neigh", "del", address, "dev", "eth0")

    def add(self, address: str) -> None:
        """Takes another address."""
        self._call_ip("address", "add", f"{address}/24", "dev", "eth0")

    def end(self) -> None:
        """Kills what was started here and still runs."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.processes.clear()

    def _call_ip(self, *arguments: str) -> None:
        ip("-n", self.name, *arguments)


@contextmanager
def hosts(*names: str) -> Iterator[list[Host]]:
    """Hosts that reach each other, and that this process reaches; gone after the block with all that runs on them."""
    require_namespaces()
    # Of this process's own: others may run tests on the same machine.
    number = os.getpid() * 8 + next(_NUMBERS) % 8
    bridge, network = f"sw{os.getpid()}br"[:15], f"10.{64 + number % 64}.{number // 64 % 256}"
    with ExitStack() as undo:
        ip("link", "add", bridge, "type", "bridge")
        undo.callback(ip, "link", "del", bridge)
        ip("address", "add", f"{network}.254/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        made: list[Host] = []
        for index, name in enumerate(names):
            host = Host(
                f"stepwell-{os.getpid()}-{name}", f"sw{os.getpid()}{name}"[:15], bridge, f"{network}.{index + 1}"
            )
            ip("netns", "add", host.name)
            undo.callback(ip, "netns", "del", host.name)
            ip("link", "add", host.port, "type", "veth", "peer", "name", "eth0", "netns", host.name)
            ip("link", "set", host.port, "master", bridge, "up")
            host.add(host.address)
            for interface in ("eth0", "lo"):
                ip("-n", host.name, "link", "set", interface, "up")
            undo.callback(host.end)
            made.append(host)
        yield made


def ip(*arguments: str) -> None:
    """The command `ip`.

    Raises:
        AssertionError: it failed; its own words.
    """
    done = subprocess.run([_ip(), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr.strip()}"


def require_namespaces() -> None:
    """Looks whether this machine lets us make hosts.

    Raises:
        AssertionError: what is missing.
    """
    assert shutil.which("ip"), "network namespaces need the command `ip`: run scripts/install-debian-packages"
    assert os.geteuid() == 0, "network namespaces need root: run the tests as root"
    assert Path("/proc/self/ns/net").exists(), "this kernel has no network namespaces (CONFIG_NET_NS)"


def _ip() -> str:
    path = shutil.which("ip")
    assert path is not None
    return path
