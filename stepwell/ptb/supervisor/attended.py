"""The worker's side of a supervisor: starts one, takes one up again, renews its lease, asks, stops it.

attended = start(order, folder, secrets)        # or take_up(folder), by any later worker
while (end := attended.end()) is None:
    attended.renew()
    …
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import stepwell
from stepwell.ptb.supervisor.host_folder import HostFolder, read_model, write_first, write_lasting
from stepwell.ptb.supervisor.host_process import HostProcess
from stepwell.ptb.supervisor.order import AgentOrder
from stepwell.ptb.supervisor.records import AgentEnd, AgentStatus, HostLost

PACKAGES = Path(str(stepwell.__file__)).parents[1]
"""What is put on the supervisor's path, so that it runs the same code."""
KILL_TIMEOUT_S = 60.0
GIVEN_UP = "null"
"""Stands in the place of a supervisor that never was, and never will be."""


class AgentHostDied(Exception):
    """The supervisor is gone, or ended the agent, for reasons that are not the agent's: infrastructure. The trial is to
    start again from its start, with a new folder. Says what was found."""


class AgentNotStarted(Exception):
    """The agent was never started: says what was found, what was wanted and what to do."""


class Attended:
    """An agent under a supervisor, which is a process of its own and outlives this one.

    Args:
        folder: The supervisor's, which has begun.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = HostFolder(folder)

    def renew(self) -> None:
        """Renews the lease. A frozen agent goes on.

        Raises:
            AgentHostDied: the supervisor is gone without an end of the agent.
        """
        if self.end() is None:
            os.utime(self._files.lease)

    def status(self) -> AgentStatus:
        """The agent as it was when the supervisor last wrote, about a second ago.

        Raises:
            AgentHostDied: somebody took the file away.
        """
        status = read_model(self._files.state, AgentStatus)
        if status is None:
            raise AgentHostDied(f"{self._files.state} is gone: was the folder removed?")
        return status

    def end(self) -> AgentEnd | None:
        """How the agent ended; None while it has not.

        Raises:
            AgentHostDied: it has no end of its own, and will have none.
        """
        alive = _is_alive(self._files)  # before the look at the files: it may write them and go between two looks
        end = read_model(self._files.end, AgentEnd)
        if end is not None:
            return end
        lost = read_model(self._files.lost, HostLost)
        if lost is not None:
            raise AgentHostDied(f"the agent of {self.folder} was ended after {lost.worked_s:.1f} s: {lost.reason}")
        if not alive:
            raise AgentHostDied(f"the supervisor of {self.folder} is gone without an end; its agent died with it")
        return None

    def stop(self, reason: str) -> None:
        """Asks the supervisor to end the agent (SIGTERM, then SIGKILL after the grace time): `end` tells when it has.
        Nothing if it has ended; the first reason stays."""
        write_first(self._files.stop, reason)


def start(order: AgentOrder, folder: Path, secrets: Mapping[str, str]) -> Attended:
    """Starts a supervisor, which starts the agent; returns when the agent's clock has begun.

    Args:
        order: What is to run.
        folder: The supervisor's own, which must not exist or be empty; only this user may read it.
        secrets: A value for each name of `order.secrets`; travels through a pipe.

    Raises:
        AgentNotStarted: the folder is taken, something that the order names is not there, or there is no sandbox.
    """
    if set(secrets) != set(order.secrets):
        raise AgentNotStarted(f"values for {sorted(secrets)}; the order wants them for {sorted(order.secrets)}")
    _check_is_there(order)
    folder = folder.absolute()
    files = HostFolder(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        if any(folder.iterdir()):
            raise AgentNotStarted(f"{folder} is not empty: take its agent up, or give another folder")
        write_lasting(files.order, order.model_dump_json(indent=1))
    except OSError as error:
        raise AgentNotStarted(f"no supervisor in {folder}: {error}; give a folder that can be written to") from error
    done = subprocess.run(
        [sys.executable, "-P", "-m", "stepwell.ptb.supervisor", str(folder)],
        input=json.dumps(dict(secrets)),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGES)},
        cwd=folder,
        check=False,
    )
    if done.returncode != 0:
        raise AgentNotStarted(done.stdout.strip() or f"the supervisor in {folder} ended with {done.returncode}")
    return Attended(folder)


def take_up(folder: Path) -> Attended:
    """The agent of a folder, ended or not, started by whichever process. If none has begun there, none ever will.

    Raises:
        AgentHostDied: the supervisor is gone without an end of the agent, or none was ever there.
    """
    folder = folder.absolute()
    files = HostFolder(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if write_first(files.host, GIVEN_UP) or files.host.read_text(encoding="utf-8") == GIVEN_UP:
        raise AgentHostDied(f"no agent had begun in {folder}; now none will: use a new folder")
    attended = Attended(folder)
    attended.end()
    return attended


def end_all(root: Path, reason: str, timeout_s: float = 60.0) -> list[Path]:
    """Stops every agent whose folder is directly under `root`, and waits until the supervisors are gone; one that does
    not go in time is killed, and everything inside with it. Gives the folders of those that ran.

    Args:
        root: Folder of folders; need not exist.
        reason: Stands in their ends.
        timeout_s: For all together; should be longer than the grace time of their orders.

    Raises:
        TimeoutError: one does not even die of SIGKILL.
    """
    held = [HostFolder(path) for path in sorted(root.iterdir())] if root.is_dir() else []
    running = {files.root: host for files in held if (host := _host(files)) is not None and host.alive()}
    for folder in running:
        Attended(folder).stop(reason)
    deadline = time.monotonic() + timeout_s
    late = [host for host in running.values() if not _gone_by(host, deadline)]
    for host in late:
        host.send(signal.SIGKILL)
    stuck = [host.pid for host in late if not _gone_by(host, time.monotonic() + KILL_TIMEOUT_S)]
    if stuck:
        raise TimeoutError(
            f"the supervisors {stuck} are there {KILL_TIMEOUT_S:.0f} s after SIGKILL: look at their state"
        )
    return list(running)


def _gone_by(host: HostProcess, deadline: float) -> bool:
    while host.alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _host(files: HostFolder) -> HostProcess | None:
    try:
        text = files.host.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if text == GIVEN_UP else HostProcess.model_validate_json(text)


def _is_alive(files: HostFolder) -> bool:
    host = _host(files)
    return host is not None and host.alive()


def _check_is_there(order: AgentOrder) -> None:
    folders = [path for path in (order.work, order.home) if path is not None]
    missing = [path for path in folders if not Path(path).is_dir()]
    sources = [mount.source for mount in order.mounts]
    others = [path for path in (*sources, *order.devices, order.image) if path is not None]
    missing += [path for path in others if not Path(path).exists()]
    if missing:
        raise AgentNotStarted(f"the order names {', '.join(missing)}, which is not there: make it, or correct the path")
