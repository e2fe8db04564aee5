"""An arena: services of its own, in which the same small run is played again and again, each time disturbed otherwise.

Each play begins with an empty ledger, starts `stepwell run` as an operator would, strikes at the armed kill points, and
lets the run end by itself. Several arenas play at once: most of a disturbed run is waiting.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg
from psycopg.conninfo import make_conninfo
from temporalio.client import Client
from temporalio.service import RPCError

from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.migrate import upgrade
from db.objects import ObjectStore
from db.owners import OWNERS
from db.recorded import Recorded
from db.run_record import read_run
from stepwell.audit.verification import verify
from stepwell.events import RunCreated
from tests.chaos.faults import Fault, LedgerRow, stream_pattern
from tests.chaos.kill_points import Held, KillPoints
from tests.chaos.recipe import RECIPE, RUN
from workers.services.addresses import Addresses
from workers.services.home import Home
from workers.services.lifecycle import held
from workers.services.plan import launcher_argv
from workers.services.postgres import DATABASE, SUPERUSER
from workers.services.settings import DatabaseRole, load_settings

TEMPLATE = "chaos_template"
LOOK_S = 0.04
"""Between two looks at kill points and output: the error of a measured detection."""
HUNG_S = 600.0
"""A run that was struck and has not ended by itself after this hangs: undisturbed it takes a fraction of a minute."""
_ROWS = "SELECT stream, type, xid::text::bigint FROM events ORDER BY position"


@dataclass
class Strike:
    """A fault that was done."""

    fault: Fault
    at_s: float
    """When its signal was sent, in seconds since the epoch."""
    told_at: int
    """Length of the command's output at that moment."""
    detected_s: float | None = None
    """From the signal to the first sign that the supervisor noticed."""


@dataclass
class Played:
    """One play of the run."""

    exit_status: int | None = None
    """Of `stepwell run`; None for a run that had to be killed."""
    strikes: list[Strike] = field(default_factory=list[Strike])
    rows: list[LedgerRow] = field(default_factory=list[LedgerRow])
    events: list[Recorded] = field(default_factory=list[Recorded])
    """Of all streams, the verdicts included."""
    findings: list[str] = field(default_factory=list[str])
    """What `stepwell audit verify` finds wrong."""
    leftovers: list[str] = field(default_factory=list[str])
    """Processes and folders that were still there after the run."""
    wall_s: float = 0.0
    output: str = ""


class Arena:
    """Use it as `async with Arena.opened(folder) as arena`, from the main thread."""

    def __init__(self, folder: Path, addresses: Addresses) -> None:
        self._folder = folder
        self._addresses = addresses
        self._home = Home(folder / "home")
        self._recipe = folder / "chaos.toml"
        self._recipe.write_text(RECIPE)
        self._out = folder / "run.out"
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @asynccontextmanager
    async def opened(cls, folder: Path) -> AsyncGenerator["Arena"]:
        """An arena whose services run for the block."""
        folder.mkdir(parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            services = held(folder / "home")
            addresses = await asyncio.to_thread(services.__enter__)
            stack.push_async_callback(asyncio.to_thread, services.__exit__, None, None, None)
            upgrade(addresses.migrator)  # in no thread: Alembic has one context a process
            arena = cls(folder, addresses)
            points = await KillPoints.open(arena._superuser(DATABASE))
            await points.install()
            await points.close()
            await arena._administer(f"CREATE DATABASE {TEMPLATE} TEMPLATE {DATABASE}")
            yield arena

    async def play(self, faults: Sequence[Fault] = ()) -> Played:
        """Plays the run from its beginning to its end, with these faults."""
        await self._empty_the_ledger()
        points = await KillPoints.open(self._superuser(DATABASE))
        played = Played()
        began = time.monotonic()
        try:
            for number, fault in enumerate(faults):
                hit = fault.append.events[0]
                await points.arm(number, stream_pattern(hit.place, RUN), hit.type, hit.ordinal)
            self._out.write_bytes(b"")
            self._start()
            played.exit_status = await self._until_the_end(faults, points, played)
        finally:
            played.wall_s = time.monotonic() - began
            self._kill()
            await points.disarm()
            await points.close()
        played.output = self._out.read_text()
        played.leftovers = self._leftovers()
        await self._read(played)
        await self._end_workflows()
        return played

    def logs(self) -> str:
        """The ends of the workers' logs of the last play."""
        folder = self._home.root / "runs" / RUN / "logs"
        return "\n".join(f"== {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in folder.glob("*.log"))

    async def _until_the_end(self, faults: Sequence[Fault], points: KillPoints, played: Played) -> int | None:
        deadline = time.monotonic() + HUNG_S
        assert self._process is not None
        while time.monotonic() < deadline:
            waiting = await points.held()
            if waiting is not None:
                fault = faults[waiting.point]
                played.strikes.append(await self._strike(fault, waiting, points))
                deadline = time.monotonic() + HUNG_S
                if fault.victim == "command":
                    self._process.wait()
                    self._start()
            self._listen(played.strikes)
            status = self._process.poll()
            if status is not None:
                return status
            await asyncio.sleep(LOOK_S)
        return None

    async def _strike(self, fault: Fault, waiting: Held, points: KillPoints) -> Strike:
        """Sends the signal, and lets the transaction that waits end as the fault says."""
        assert self._process is not None
        of_writer = fault.process == "writer"
        kind = "command" if waiting.writer == self._process.pid else waiting.kind
        if kind != fault.append.writer:
            raise AssertionError(f"{fault} is written by {kind}, in the undisturbed run it was {fault.append.writer}")
        pid = waiting.writer if of_writer else self._process_of(fault.victim)
        victim = psutil.Process(pid)
        if of_writer and waiting.client_port not in {c.laddr.port for c in victim.net_connections("tcp")}:
            raise AssertionError(
                f"process {pid}, called {waiting.application}, has no connection {waiting.client_port}"
            )
        strike = Strike(fault, time.time(), self._out.stat().st_size)
        victim.send_signal(signal.Signals[fault.signal])
        if fault.signal == "SIGKILL":
            await _gone(victim)
        if of_writer and fault.moment == "before":
            await points.roll_back(waiting)
        else:
            await points.commit(waiting)
        return strike

    def _listen(self, strikes: Iterable[Strike]) -> None:
        """Notes when the supervisor first says that it noticed."""
        for strike in strikes:
            if strike.detected_s is None and strike.fault.victim != "command":
                said = self._out.read_bytes()[strike.told_at :].decode(errors="replace")
                if any(f"worker {strike.fault.victim}" in line for line in said.splitlines()):
                    strike.detected_s = time.time() - strike.at_s

    def _process_of(self, kind: str) -> int:
        """The command, or its worker of a kind."""
        assert self._process is not None
        if kind == "command":
            return self._process.pid
        for child in psutil.Process(self._process.pid).children():
            words = child.cmdline()
            if "--parent" in words and words[words.index("--parent") + 2] == kind:
                return child.pid
        raise AssertionError(f"`stepwell run` has no {kind} worker: {self._out.read_text()[-2000:]}")

    def _start(self) -> None:
        """`stepwell run`, tied to the life of this process."""
        command = [sys.executable, "-m", "cli.main", "run", str(self._recipe), "--name", RUN]
        with self._out.open("ab") as out:
            self._process = subprocess.Popen(
                launcher_argv(command, death_signal=signal.SIGKILL, identity=None),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "STEPWELL_HOME": str(self._home.root)},
                start_new_session=True,
            )

    def _kill(self) -> None:
        """Ends the command if it still runs; its workers die with it."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _leftovers(self) -> list[str]:
        """Workers of the command that outlived it, and folders that they left."""
        assert self._process is not None
        left = [str(folder) for folder in (self._home.root / "cache").glob("*/*")]
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                words = process.cmdline()
                if "--parent" in words and words[words.index("--parent") + 1] == str(self._process.pid):
                    left.append(" ".join(words))
        return left

    async def _read(self, played: Played) -> None:
        """Reads and verifies what is recorded."""
        database, objects = Database(self._addresses.auditor), ObjectStore(self._addresses.bucket)
        try:
            blobs = BlobStore(database, objects)
            for prefix in (
                "run",
                "operator",
                "weights",
                "validation",
                "prompt",
                "rollout",
                "engine",
                "health",
                "history",
                "seal",
                "verdict",
            ):
                played.events += await Ledger(database).read_prefix(f"{prefix}/")
            record = await read_run(database, blobs, RUN)
        finally:
            await objects.close()
            await database.close()
        if record is None:
            played.findings.append("there is no run")
        else:
            results = (await asyncio.to_thread(verify, record)).results
            played.findings += [f"{result.rule}: {finding}" for result in results for finding in result.findings]
        async with await psycopg.AsyncConnection.connect(self._superuser(DATABASE)) as connection:
            rows = await (await connection.execute(_ROWS)).fetchall()
        played.rows = [LedgerRow(*row, writer=_writer_of(*row[:2])) for row in rows]

    async def _empty_the_ledger(self) -> None:
        await self._administer(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        owner = DatabaseRole.MIGRATOR.login
        await self._administer(f"CREATE DATABASE {DATABASE} TEMPLATE {TEMPLATE} OWNER {owner}")

    async def _end_workflows(self) -> None:
        """Groups may still wait for a deadline after their run is over; the next run has the same names."""
        client = await Client.connect(self._addresses.temporal, namespace=self._addresses.namespace)
        quiet = 0
        while quiet < 2:
            open_now = [found async for found in client.list_workflows("ExecutionStatus = 'Running'")]
            for found in open_now:
                with contextlib.suppress(RPCError):  # it has just ended
                    await client.get_workflow_handle(found.id, run_id=found.run_id).terminate("the play is over")
            quiet = 0 if open_now else quiet + 1
            await asyncio.sleep(0.1)

    async def _administer(self, statement: str) -> None:
        async with await psycopg.AsyncConnection.connect(self._superuser("postgres"), autocommit=True) as connection:
            await connection.execute(statement.encode())

    def _superuser(self, database: str) -> str:
        settings = load_settings(self._home)
        assert settings is not None
        port = settings.ports.postgres
        return make_conninfo(
            host="127.0.0.1", port=port, dbname=database, user=SUPERUSER, password=settings.superuser_password
        )


def _writer_of(stream: str, type: str) -> str:
    """Kind of process that appends an event: its stream's owner, but `stepwell run` itself creates the run."""
    return "command" if type == RunCreated.__name__ else OWNERS[stream.partition("/")[0]]


async def _gone(process: psutil.Process) -> None:
    """Waits until a process that was killed runs no more; its parent may not have taken its status yet."""
    deadline = time.monotonic() + 10.0
    with contextlib.suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, f"process {process.pid} runs on 10 s after SIGKILL"
            await asyncio.sleep(0.005)
