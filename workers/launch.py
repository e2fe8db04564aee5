"""Starts the workers of a run as processes of its own, watches them, restarts one that dies or hangs, stops them at the
end.

Each worker asks the kernel to die with this process, so that nothing outlives it however it ends.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from workers.beats import Pulse

DEATHS_ALLOWED = 8
"""A worker that dies more often than this within the window will not get better by itself."""
WINDOW_S = 60.0
PAUSE_S = 0.3
"""Before a dead worker is started again."""
LOOK_S = 0.2
HUNG_S = 30.0
"""A worker whose event loop was silent for this long is killed: it beats every second. Its lease ran out long before,
and with it its traffic; a machine that is overloaded must not kill what is only slow."""
TELL_S = 1.0
"""For a worker that hangs to write to its log where."""
HUNG_AT_START_S = 240.0
"""The same before its first beat, while it imports what it needs."""
STOP_S = 10.0
"""From SIGTERM to SIGKILL; a worker lets activities go on for half of it."""

QUIET_THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "TOKENIZERS_PARALLELISM": "false"}
"""Several processes share few cores: a thread that waits must not spin."""


class WorkerFailed(RuntimeError):
    """A worker dies again and again; the message ends with its log."""


@dataclass(frozen=True)
class WorkerSpec:
    """One worker to run."""

    name: str
    """For people and its log, for example `sandbox-1`."""
    arguments: tuple[str, ...]
    """After `stepwell worker`."""


@dataclass
class _Running:
    spec: WorkerSpec
    process: "subprocess.Popen[bytes]"
    pulse: Pulse
    log: IO[bytes]
    hung: bool = False
    """Whether it was killed for its silence."""
    deaths: list[float] = field(default_factory=list[float])


class WorkerSet:
    """The workers of one run on this machine. Start and stop it in the main thread."""

    def __init__(self, logs: Path, tell: Callable[[str], None]) -> None:
        """Args:
        logs: folder of their logs.
        tell: where a death or a hang is told.
        """
        self._logs = logs
        self._tell = tell
        self._running: list[_Running] = []

    def start(self, specs: Sequence[WorkerSpec]) -> None:
        """Starts workers."""
        self._logs.mkdir(parents=True, exist_ok=True)
        for spec in specs:
            log = (self._logs / f"{spec.name}.log").open("ab")
            process, pulse = _spawn(spec, log)
            self._running.append(_Running(spec, process, pulse, log))

    def pids(self) -> dict[str, int]:
        """Process of each worker, by name."""
        return {running.spec.name: running.process.pid for running in self._running}

    async def watch(self) -> None:
        """Restarts what dies, kills what hangs, until cancelled.

        Raises:
            WorkerFailed: one died too often.
        """
        while True:
            for running in self._running:
                if running.process.poll() is not None:
                    await self._restart(running)
                else:
                    self._listen(running)
            await asyncio.sleep(LOOK_S)

    def _listen(self, running: _Running) -> None:
        """Ends a worker that was silent for too long; a later look finds it dead. SIGABRT makes it write to its log
        where it stood; SIGKILL ends also one that was stopped."""
        pulse = running.pulse
        pulse.look(time.monotonic())
        allowed_s = HUNG_S if pulse.begun else HUNG_AT_START_S
        if pulse.silent_s > allowed_s + TELL_S:
            running.process.kill()
        elif pulse.silent_s > allowed_s and not running.hung:
            running.hung = True
            running.process.send_signal(signal.SIGABRT)
            self._tell(
                f"worker {running.spec.name} (pid {running.process.pid}) is hung: its event loop was silent for "
                f"{allowed_s:.0f} s; killing it"
            )

    async def _restart(self, running: _Running) -> None:
        now = time.monotonic()
        running.deaths = [at for at in running.deaths if now - at < WINDOW_S] + [now]
        how = "hung" if running.hung else describe_exit(running.process.returncode)
        if len(running.deaths) > DEATHS_ALLOWED:
            tail = (self._logs / f"{running.spec.name}.log").read_text(errors="replace")[-2000:]
            raise WorkerFailed(
                f"worker {running.spec.name} ended {len(running.deaths)} times within {WINDOW_S:.0f} s, "
                f"last {how}. The end of its log:\n{tail}"
            )
        self._tell(f"worker {running.spec.name} (pid {running.process.pid}) ended {how}; starting it again")
        await asyncio.sleep(PAUSE_S * len(running.deaths))
        running.pulse.close()
        running.process, running.pulse = _spawn(running.spec, running.log)
        running.hung = False

    async def stop(self) -> None:
        """Ends all workers: SIGTERM, then SIGKILL after the grace. Each is gone when it returns."""
        for running in self._running:
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        for running in self._running:
            try:
                await asyncio.to_thread(running.process.wait, max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                running.process.kill()
                await asyncio.to_thread(running.process.wait)
            running.pulse.close()
            running.log.close()
        self._running.clear()


def describe_exit(status: int) -> str:
    """How a process ended, in words."""
    if status < 0:
        return f"by {signal.Signals(-status).name}"
    return f"with status {status}"


def _spawn(spec: WorkerSpec, log: IO[bytes]) -> "tuple[subprocess.Popen[bytes], Pulse]":
    pulse = Pulse()
    arguments = [sys.executable, "-m", "cli.main", "worker", "--parent", str(os.getpid()), *spec.arguments]
    process = subprocess.Popen(
        [*arguments, "--beats", str(pulse.writing)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=QUIET_THREADS | dict(os.environ),
        start_new_session=True,
        pass_fds=(pulse.writing,),
    )
    pulse.started()
    return process, pulse
