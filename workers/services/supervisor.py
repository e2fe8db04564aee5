"""The process that owns the embedded servers of one home: starts them, restarts one that dies, ends them in good order.

    python -P -m workers.services.supervisor HOME

It knows nothing about the servers but how to launch them (`plan.json`). Every server asks the kernel to be killed when
this process dies. It runs as long as the `daemon` file lies in the home or one of the `owners` lives.
Signals: SIGTERM ends everything; SIGHUP reads the plan again and starts what is new in it.
"""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from workers.services.home import Home, try_lock
from workers.services.plan import (
    Launch,
    ServiceState,
    SupervisorState,
    launcher_argv,
    read_plan,
    write_state,
)
from workers.services.processes import ProcessId, process_id

TICK_S = 0.25
"""How often owners are looked at: an owner that was killed cannot tell us."""
LONGEST_BACKOFF_S = 5.0
SHORT_LIFE_S = 10.0
"""A server that dies younger is started again later and later."""
LOG_LIMIT_BYTES = 16 << 20
"""A log that grew beyond it is moved aside; one older part is kept."""
WAKING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}

_log = logging.getLogger("supervisor")


@dataclass
class _Server:
    """One server and its history under this supervisor."""

    launch: Launch
    process: "subprocess.Popen[bytes] | None" = None
    identity: ProcessId | None = None
    starts: int = 0
    short_lives: int = 0
    last_exit: int | None = None
    started: float = 0.0
    not_before: float = 0.0

    def start(self) -> None:
        log = Path(self.launch.log)
        if self.starts == 0 and log.exists():
            log.replace(log.with_name(f"{log.name}.1"))  # so that what a new log says is about this run
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                launcher_argv(self.launch.argv, death_signal=self.launch.death_signal, identity=self.launch.identity),
                cwd=self.launch.folder,
                env=self.launch.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
            )
        self.identity = process_id(self.process.pid)
        self.starts += 1
        self.started = time.monotonic()
        _log.info("%s started, pid %d", self.launch.name, self.process.pid)

    def reap(self) -> bool:
        """Whether it has died since the last look; then it will be started again after a while."""
        if self.process is None or (code := self.process.poll()) is None:
            return False
        life_s = time.monotonic() - self.started
        self.short_lives = self.short_lives + 1 if life_s < SHORT_LIFE_S else 0
        backoff_s = min(LONGEST_BACKOFF_S, 0.1 * 2**self.short_lives) if self.short_lives else 0.0
        self.not_before = time.monotonic() + backoff_s
        self.process, self.identity, self.last_exit = None, None, code
        _log.warning(
            "%s died after %.1f s with %d; starting again in %.1f s", self.launch.name, life_s, code, backoff_s
        )
        return True

    def ask_to_stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(self.launch.stop_signal)

    def finish(self, deadline: float) -> None:
        """Waits until `deadline`, then kills it and whatever is left of its group."""
        if self.process is not None:
            try:
                self.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _log.info(
                    "%s still runs %.0f s after signal %d: killed",
                    self.launch.name,
                    self.launch.grace_s,
                    self.launch.stop_signal,
                )
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            _log.info("%s ended with %d", self.launch.name, self.process.wait())
            self.process, self.identity = None, None
        for leftover in self.launch.leftovers:
            Path(leftover).unlink(missing_ok=True)


def bound_log(path: Path) -> None:
    """Moves what a log holds aside when it is too long; its writer appends, and so goes on at the start."""
    if path.exists() and path.stat().st_size > LOG_LIMIT_BYTES:
        shutil.copyfile(path, path.with_name(f"{path.name}.1"))
        os.truncate(path, 0)


def living_owners(home: Home) -> list[ProcessId]:
    """Processes that want the services; the files of dead ones are removed."""
    owners: list[ProcessId] = []
    for path in home.owners.iterdir():
        pid, ticks, _ = path.name.split("-")
        owner = ProcessId(int(pid), int(ticks))
        if owner.alive():
            owners.append(owner)
        else:
            path.unlink(missing_ok=True)
    return owners


class Supervisor:
    """Runs the plan of one home until nobody wants it any more."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._servers: dict[str, _Server] = {}
        self._lock: int | None = None

    def run(self) -> None:
        """Returns when every server has ended."""
        self._read_plan()
        try:
            while self._tick():
                pass
        finally:
            for server in self._servers.values():
                server.ask_to_stop()
            asked = time.monotonic()
            for server in self._servers.values():
                server.finish(asked + server.launch.grace_s)
            self._home.state.unlink(missing_ok=True)
            if self._lock is not None:
                self._home.lock.unlink(missing_ok=True)

    def _tick(self) -> bool:
        """Waits for something to happen, and sees to it; False when it is time to stop."""
        happened = signal.sigtimedwait(WAKING, TICK_S)
        if happened is not None and happened.si_signo in (signal.SIGTERM, signal.SIGINT):
            _log.info("told to stop by signal %d", happened.si_signo)
            return False
        if happened is not None and happened.si_signo == signal.SIGHUP:
            self._read_plan()
        changed = False
        for server in self._servers.values():
            changed |= server.reap()
            if server.process is None and time.monotonic() >= server.not_before:
                server.start()
                changed = True
            bound_log(Path(server.launch.log))
        if changed:
            self._write_state()
        return not self._abandoned()

    def _abandoned(self) -> bool:
        """Whether nobody wants the services; then nobody can begin to want them until we have ended."""
        if self._home.daemon.exists() or living_owners(self._home):
            return False
        # Whoever holds the lock may be about to want them. We keep it until this process ends.
        descriptor = try_lock(self._home.lock)
        if descriptor is None:
            return False
        if self._home.daemon.exists() or living_owners(self._home):
            os.close(descriptor)
            return False
        _log.info("no owner is left")
        self._lock = descriptor
        return True

    def _read_plan(self) -> None:
        for name, launch in read_plan(self._home.plan).items():
            if name not in self._servers:
                self._servers[name] = _Server(launch)
                self._servers[name].start()
        self._write_state()

    def _write_state(self) -> None:
        own = process_id(os.getpid())
        if own is None:
            raise RuntimeError("this process is not in /proc: is /proc mounted?")
        services = {
            name: ServiceState(server.identity, server.starts, server.last_exit)
            for name, server in self._servers.items()
        }
        write_state(self._home.state, SupervisorState(own, services))


def main() -> int:
    """Runs until it is told to stop or nobody wants the services; 1 if the home has a supervisor already."""
    home = Home(Path(sys.argv[1]))
    signal.pthread_sigmask(signal.SIG_BLOCK, WAKING)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    if try_lock(home.supervisor_lock) is None:
        _log.error("the home %s has a supervisor already", home.root)
        return 1
    try:
        Supervisor(home).run()
    finally:
        home.supervisor_lock.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
