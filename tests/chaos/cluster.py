"""Two hosts: services, control worker, trainer and the command on one, engine and sandboxes on the other."""

import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from db.database import Database
from db.ledger import Ledger
from db.migrate import upgrade
from tests.chaos.netns import Host, hosts
from tests.chaos.own_services import PATIENCE_S
from tests.stack.tiny_run import RECIPE, TinyRun
from workers.services.addresses import Addresses, resolve
from workers.services.lifecycle import down
from workers.services.settings import DatabaseRole, ServiceName

PROXY = Path(__file__).with_name("proxy.py")
STEPWELL = (sys.executable, "-m", "cli.main")


@dataclass
class Cluster:
    """The two hosts."""

    first: Host
    second: Host
    folder: Path
    addresses: Addresses
    """Of the services, as seen on the first host."""
    service_ip: dict[ServiceName, str]
    """Where each service is, as seen from the second host: an address of its own, so that each can be lost alone."""
    ledger: Ledger

    @property
    def home(self) -> Path:
        """Home of the services."""
        return self.folder / "first"

    def environment(self, home: str) -> dict[str, str]:
        """Of processes on the second host."""
        bucket = self.addresses.bucket
        assert bucket.access_key is not None
        assert bucket.secret_key is not None
        urls = {role: self._url(self.addresses.database_urls[role], ServiceName.POSTGRES) for role in DatabaseRole}
        given = {
            "STEPWELL_HOME": str(self.folder / home),
            "STEPWELL_TEMPORAL_ADDRESS": f"{self.service_ip[ServiceName.TEMPORAL]}:{port_of(self.addresses.temporal)}",
            "STEPWELL_DATABASE_URL": urls[DatabaseRole.APPENDER],
            "STEPWELL_S3_ENDPOINT": self._url(str(bucket.endpoint), ServiceName.S3),
            "STEPWELL_S3_BUCKET": bucket.bucket,
            "STEPWELL_S3_ACCESS_KEY": bucket.access_key,
            "STEPWELL_S3_SECRET_KEY": bucket.secret_key,
        }
        given |= {f"STEPWELL_DATABASE_URL_{role.name}": url for role, url in urls.items()}
        return {**os.environ, **given}

    def run(self, name: str) -> "ClusterRun":
        """A run that is under way: the command on the first host, its workers on both."""
        run = ClusterRun(name, self.home, self.ledger, self.folder, cluster=self)
        run.start()
        return run

    def _url(self, url: str, service: ServiceName) -> str:
        return url.replace("127.0.0.1", self.service_ip[service])


@dataclass
class ClusterRun(TinyRun):
    """A run whose workers are no children of the command."""

    cluster: Cluster | None = None
    workers: "dict[str, subprocess.Popen[bytes]]" = field(default_factory=dict)

    def start(self) -> None:
        """Starts the command, then the workers."""
        cluster = self.cluster
        assert cluster is not None
        recipe = self.folder / "tiny.toml"
        recipe.write_text(RECIPE)
        here = {**os.environ, "STEPWELL_HOME": str(self.home)}
        there = cluster.environment("second")
        out = self._log(self.name, "out")
        self.process = cluster.first.start(
            [*STEPWELL, "run", str(recipe), "--name", self.name, "--no-workers"], out, here
        )
        self._worker(cluster.first, "control", (), here)
        self._worker(cluster.first, "trainer", (), here)
        self._worker(cluster.second, "engine", ("--run", self.name), there)
        self._worker(cluster.second, "sandbox", ("--concurrency", "4"), there)

    def worker(self, kind: str) -> psutil.Process:
        """The process of a worker."""
        return psutil.Process(self.workers[kind].pid)

    def verify(self) -> "subprocess.CompletedProcess[str]":
        """`stepwell audit verify`, on a third host."""
        assert self.cluster is not None
        return subprocess.run(
            [*STEPWELL, "audit", "verify", self.name],
            env=self.cluster.environment("third"),
            capture_output=True,
            text=True,
            check=False,
        )

    def stop_workers(self) -> dict[str, int]:
        """Ends the workers by SIGTERM; their exit codes."""
        for process in self.workers.values():
            process.terminate()
        return {kind: process.wait(30) for kind, process in self.workers.items()}

    def logs(self) -> str:
        """What the command and the workers printed."""
        return "\n".join(f"== {path.name}\n{path.read_text()}" for path in sorted(self.folder.glob(f"{self.name}*.*")))

    def kill(self) -> None:
        """Ends the command and the workers."""
        for process in (self.process, *self.workers.values()):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()

    def _worker(self, host: Host, kind: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        log = self._log(f"{self.name}-{kind}", "log")
        self.workers[kind] = host.start([*STEPWELL, "worker", kind, *arguments], log, environment)

    def _log(self, name: str, suffix: str):
        return (self.folder / f"{name}.{suffix}").open("ab")


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    """Two hosts with the services on the first; all of it is gone after the block."""
    with hosts("a", "b") as (first, second):
        home = folder / "first"
        plain = {name: value for name, value in os.environ.items() if not name.startswith("STEPWELL_")}
        try:
            first.call([*STEPWELL, "up"], {**plain, "STEPWELL_HOME": str(home)})
            addresses = resolve(home, {})
            service_ip = _forward(first, addresses, folder)
            upgrade(addresses.migrator.replace("127.0.0.1", service_ip[ServiceName.POSTGRES]))
            auditor = addresses.auditor.replace("127.0.0.1", service_ip[ServiceName.POSTGRES])
            database = Database(auditor, pool_size=2, wait_s=PATIENCE_S)
            try:
                yield Cluster(first, second, folder, addresses, service_ip, Ledger(database))
            finally:
                await database.close()
        finally:
            down(home)


def _forward(host: Host, addresses: Addresses, folder: Path) -> dict[ServiceName, str]:
    """Makes each service reachable from other hosts, at an address of its own."""
    ports = {
        ServiceName.TEMPORAL: port_of(addresses.temporal),
        ServiceName.POSTGRES: urlsplit(addresses.appender).port,
        ServiceName.S3: urlsplit(str(addresses.bucket.endpoint)).port,
    }
    reached: dict[ServiceName, str] = {}
    for index, (service, port) in enumerate(ports.items()):
        reached[service] = f"{host.address.rpartition('.')[0]}.{11 + index}"
        host.add(reached[service])
        log = folder / f"proxy-{service}.log"
        with log.open("wb") as output:
            proxy = host.start([sys.executable, str(PROXY), reached[service], str(port)], output)
        deadline = time.monotonic() + 30
        while "forwarding" not in log.read_text():
            assert proxy.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
    return reached


def port_of(address: str) -> int:
    """The port of `host:port`."""
    return int(address.rpartition(":")[2])
