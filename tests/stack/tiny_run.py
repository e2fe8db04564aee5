"""A real run, small enough for a test: `stepwell run` as a process, its ledger to look at, its workers to kill."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from db.ledger import Ledger
from db.recorded import Recorded
from stepwell.events import RolloutEnded, RolloutGraded, StepCompleted, VersionCreated
from stepwell.events.streams import run_stream, weights_stream
from workers.services.addresses import Addresses
from workers.services.home import Home
from workers.services.plan import launcher_argv, read_state

RECIPE = """
name = "tiny"

[run]
seed = 3
max_steps = 2
prompts_per_step = 2
samples_per_prompt = 4
max_staleness = 1
checkpoint_every = 10
steps_per_history = 1

[policy]
kind = "micro"

[tasks]
source = "forged"

[agent]
tools = "compact"
max_turns = 3
max_context_tokens = 384
max_turn_tokens = 12

[rl]
normalise = "group_std"
force_on_policy_ratio = false

[optimiser]
learning_rate = 1e-3

# One sequence at a time, and no reuse of prefixes: the bits of a token then depend on nothing but its own rollout.
[engine]
max_context = 384
max_batch = 1
idle_rows = 0
reuse_prefixes = false

[sandbox]
concurrency = 4

[validation]
tasks = 2
samples = 2
every = 2
first = 2
initial = false
"""

TIMEOUT_S = 240.0


@dataclass
class TinyRun:
    """One run, of the recipe above if it is given no other, with some settings of its own."""

    name: str
    home: Path
    ledger: Ledger
    folder: Path
    settings: tuple[str, ...] = ()
    recipe: str = RECIPE
    """Its text."""
    patience_s: float = TIMEOUT_S
    process: "subprocess.Popen[bytes] | None" = None
    seen: dict[int, str] = field(default_factory=dict)
    """Every process of the run that was seen, by pid: its command."""

    @property
    def output(self) -> str:
        """What the command printed."""
        return (self.folder / f"{self.name}.out").read_text()

    def start(self) -> None:
        """Starts, or goes on with, the run."""
        recipe = self.folder / "tiny.toml"
        recipe.write_text(self.recipe)
        settings = [part for setting in self.settings for part in ("--set", setting)]
        with (self.folder / f"{self.name}.out").open("ab") as out:
            command = [sys.executable, "-m", "cli.main", "run", str(recipe), "--name", self.name, *settings]
            self.process = subprocess.Popen(
                launcher_argv(command, death_signal=signal.SIGKILL, identity=None),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "STEPWELL_HOME": str(self.home)},
                start_new_session=True,
            )

    async def until(self, happened: Callable[[list[Recorded]], bool]) -> None:
        """Waits until the run's events are so that `happened`; looks about 50 times a second."""
        deadline = time.monotonic() + self.patience_s
        while not happened(await self.events()):
            self._look_at_processes()
            assert self.process is not None
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            await asyncio.sleep(0.02)

    def worker(self, kind: str) -> psutil.Process:
        """The process of a worker."""
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):  # one that has just died is no worker any more
                if f"worker --parent {self.process.pid} {kind}" in " ".join(child.cmdline()):
                    return child
        raise AssertionError(f"no {kind} worker: {self.output}")

    async def finish(self) -> int:
        """Waits for the command to end; its exit code."""
        assert self.process is not None
        deadline = time.monotonic() + self.patience_s
        while self.process.poll() is None:
            self._look_at_processes()
            assert time.monotonic() < deadline, self.output
            await asyncio.sleep(0.1)
        return self.process.returncode

    def kill(self) -> None:
        """Ends the command if it still runs; its workers die with it."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    async def interrupt(self) -> int:
        """Ctrl-C."""
        assert self.process is not None
        self._look_at_processes()
        self.process.send_signal(signal.SIGINT)
        return await self.finish()

    async def events(self) -> list[Recorded]:
        """Every event of the run."""
        return [
            recorded
            for prefix in (run_stream(self.name), weights_stream(self.name), f"rollout/{self.name}/")
            for recorded in await self.ledger.read_prefix(prefix)
        ]

    async def outcome(self) -> dict[str, object]:
        """What the run did, by places that are the same in every run of the recipe: weights, tokens, scores."""
        done: dict[str, object] = {}
        for recorded in await self.events():
            event = recorded.event
            place = recorded.stream.replace(f"/{self.name}", "")
            if isinstance(event, VersionCreated):
                done["version 0"] = event.digests.exported
            elif isinstance(event, StepCompleted):
                done[f"version {event.version}"] = event.weights_digest
            elif isinstance(event, RolloutEnded):
                done[f"{place} tokens"] = event.content
            elif isinstance(event, RolloutGraded):
                done[f"{place} score"] = event.score
        return done

    def leftovers(self) -> list[str]:
        """Processes of the run that are still there; servers that it started again are there for others too."""
        servers = self._servers()
        return [command for pid, command in self.seen.items() if psutil.pid_exists(pid) and pid not in servers]

    def verify(self) -> "subprocess.CompletedProcess[str]":
        """`stepwell audit verify`."""
        return subprocess.run(
            [sys.executable, "-m", "cli.main", "audit", "verify", self.name],
            env={**os.environ, "STEPWELL_HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
        )

    def _servers(self) -> set[int]:
        """The supervisor of the embedded services, and all below it."""
        state = read_state(Home.of(self.home).state)
        if state is None:
            return set()
        try:
            supervisor = psutil.Process(state.supervisor.pid)
            return {supervisor.pid, *(child.pid for child in supervisor.children(recursive=True))}
        except psutil.NoSuchProcess:
            return set()

    def _look_at_processes(self) -> None:
        assert self.process is not None
        try:
            children = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return
        for child in children:
            if child.pid not in self.seen:
                try:
                    self.seen[child.pid] = " ".join(child.cmdline())
                except psutil.NoSuchProcess:
                    continue


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def undisturbed(
    services: Addresses, services_home: Path, ledger: Ledger, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, object]:
    """What the run does when nothing disturbs it."""
    run = TinyRun("undisturbed", services_home, ledger, tmp_path_factory.mktemp("undisturbed"))
    try:
        run.start()
        assert await run.finish() == 0, run.output
        return await run.outcome()
    finally:
        run.kill()


Start = Callable[..., TinyRun]
"""(name, *settings) to a run that is under way."""
_TAKEN = {"undisturbed"}
"""Names of runs that were started in this session's ledger."""


@pytest.fixture
def start_run(services: Addresses, services_home: Path, ledger: Ledger, tmp_path: Path) -> Iterator[Start]:
    """Starts runs that end with the test, whatever becomes of it."""
    runs: list[TinyRun] = []

    def start(name: str, *settings: str) -> TinyRun:
        assert name not in _TAKEN, f"another test has a run of the name {name!r}, in the same ledger"
        _TAKEN.add(name)
        runs.append(TinyRun(name, services_home, ledger, tmp_path, settings))
        runs[-1].start()
        return runs[-1]

    yield start
    for run in runs:
        run.kill()
