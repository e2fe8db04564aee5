"""A run whose workers are taken away says so, by what is missing and what to do, and goes on when they are back."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from db.ledger import Ledger
from db.recorded import Recorded
from stepwell.contracts.operators import StopNote
from stepwell.events import StallBegan, StallEnded, TurnRecorded
from stepwell.events.streams import health_stream, run_stream
from tests.stack.steering import Helm
from tests.stack.tiny_run import RECIPE
from workers.launch import QUIET_THREADS
from workers.services.addresses import Addresses

pytestmark = pytest.mark.timeout(400)

RUN = "crewless"
NOTICED_S = 60.0
TIMEOUT_S = 150.0


class Crew:
    """Workers of one run, and the command that shows it: started by the test, so that nobody restarts them."""

    def __init__(self, home: Path, folder: Path) -> None:
        self._environment = {**QUIET_THREADS, **os.environ, "STEPWELL_HOME": str(home)}
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def show(self) -> None:
        """`stepwell run`, with the workers left to others."""
        (self._folder / "tiny.toml").write_text(RECIPE)
        recipe = str(self._folder / "tiny.toml")
        self._start("run", "run", recipe, "--name", RUN, "--no-workers", "--set", "run.max_steps=200")

    def start(self, kind: str, *options: str) -> None:
        """One worker."""
        self._start(kind, "worker", "--parent", str(os.getpid()), kind, *options)

    def send(self, kind: str, number: signal.Signals) -> None:
        """A signal to one of them."""
        self._processes[kind].send_signal(number)

    def pid(self, kind: str) -> int:
        """Process of one of them."""
        return self._processes[kind].pid

    def output(self, kind: str = "run") -> str:
        """What one of them printed."""
        return (self._folder / f"{kind}.out").read_text()

    def ask(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """A command of a user."""
        return subprocess.run(
            [sys.executable, "-m", "cli.main", *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    async def end_of_run(self) -> int:
        """Exit code of `stepwell run`."""
        return await asyncio.to_thread(self._processes["run"].wait, TIMEOUT_S)

    def kill(self) -> None:
        """Ends all of them."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _start(self, name: str, *arguments: str) -> None:
        with (self._folder / f"{name}.out").open("ab") as out:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "cli.main", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self._environment,
                start_new_session=True,
            )


@pytest.fixture
def crew(services: Addresses, services_home: Path, tmp_path: Path) -> Iterator[Crew]:
    """A crew that is gone after the test."""
    gathered = Crew(services_home, tmp_path)
    yield gathered
    gathered.kill()


async def until(ledger: Ledger, prefix: str, happened: Callable[[list[Recorded]], bool], crew: Crew) -> list[Recorded]:
    """Waits until the streams whose names begin so are as wanted."""
    deadline = time.monotonic() + TIMEOUT_S
    while not happened(events := await ledger.read_prefix(prefix)):
        assert time.monotonic() < deadline, f"{[each.event for each in events][-5:]}\n{crew.output()}"
        await asyncio.sleep(0.2)
    return events


AWAY = {"trainer", "engine", "sandbox"}


def whats(events: list[Recorded]) -> set[str]:
    """What is stalled by the health stream."""
    began = {each.event.number: each.event.what for each in events if isinstance(each.event, StallBegan)}
    ended = {each.event.number for each in events if isinstance(each.event, StallEnded)}
    return {what for number, what in began.items() if number not in ended}


def count(kind: type[object]) -> Callable[[list[Recorded]], int]:
    return lambda events: sum(isinstance(each.event, kind) for each in events)


async def test_a_run_says_which_workers_it_waits_for_and_goes_on_when_they_are_back(
    crew: Crew, ledger: Ledger, helm: Helm
) -> None:
    crew.show()
    await until(ledger, run_stream(RUN), bool, crew)
    crew.start("trainer")
    crew.start("engine", "--run", RUN)
    crew.start("sandbox", "--concurrency", "4")
    status = json.loads(crew.ask("status", "--json").stdout)
    (silent,) = [each for each in status["runs"] if each["run"] == RUN]
    (silence,) = silent["waits"]
    assert silence.startswith("waiting for a control worker: none is alive")
    assert silence.endswith("start one: stepwell worker control")
    crew.start("control")
    await until(ledger, f"rollout/{RUN}/", lambda events: count(TurnRecorded)(events) > 2, crew)

    crew.send("trainer", signal.SIGKILL)
    crew.send("engine", signal.SIGKILL)
    crew.send("sandbox", signal.SIGSTOP)
    lost_at = time.time()
    health = await until(ledger, health_stream(RUN), lambda events: whats(events) == AWAY, crew)
    for each in [each for each in health if isinstance(each.event, StallBegan)][-3:]:
        assert isinstance(each.event, StallBegan)
        assert datetime.fromisoformat(each.envelope.time).timestamp() - lost_at < NOTICED_S
        assert f"no {each.event.what} worker is alive (the last one" in each.event.cause
        assert f"/{crew.pid(each.event.what)}, was seen" in each.event.cause

    progress = await helm.until(RUN, lambda progress: len(progress.stalls) == 3)
    assert progress.state == "stalled"
    assert "start one: stepwell worker trainer" in progress.waiting_for
    shown = json.loads(crew.ask("watch", RUN, "--json").stdout)
    assert shown["progress"]["state"] == "stalled"
    assert any(line.startswith("waiting for sandbox: no sandbox worker is alive") for line in shown["waits"])
    turns = count(TurnRecorded)(await ledger.read_prefix(f"rollout/{RUN}/"))

    crew.start("trainer")
    crew.start("engine", "--run", RUN)
    crew.send("sandbox", signal.SIGCONT)
    await until(ledger, health_stream(RUN), lambda events: not whats(events), crew)
    await until(ledger, f"rollout/{RUN}/", lambda events: count(TurnRecorded)(events) > turns, crew)
    assert (await helm.until(RUN, lambda progress: not progress.stalls)).state == "running"

    await helm.ask(RUN, "stop", StopNote(reason="the test has seen enough", at="now"))
    assert await crew.end_of_run() == 0, crew.output()
    for kind in ("trainer", "engine", "sandbox"):
        assert crew.output().count(f"\nwaiting for {kind}: no {kind} worker is alive") == 1, crew.output()
        assert crew.output().count(f"\nno longer waiting for {kind}, after") == 1, crew.output()
