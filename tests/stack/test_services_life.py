"""The embedded services through starts, deaths and stops. The tests of one home follow each other on it."""

import argparse
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import boto3
import psutil
import psycopg
import pytest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

import cli.status
from workers.services.addresses import Addresses
from workers.services.embedded import EmbeddedService
from workers.services.errors import NotReadyError
from workers.services.home import Home, is_locked
from workers.services.lifecycle import down, purge, services_of, up
from workers.services.plan import SupervisorState, read_plan, read_state
from workers.services.report import status
from workers.services.settings import ServiceName, load_settings
from workers.services.temporal import RETENTION, SEARCH_ATTRIBUTES

ROOT = Path(__file__).resolve().parents[2]
UP = "from pathlib import Path; import sys; from workers.services.lifecycle import up; print(up(Path(sys.argv[1])))"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home of this module's own, whose services may be killed."""
    home = Home.of(tmp_path_factory.mktemp("home"))
    yield home
    purge(home.root)


def state_of(home: Home) -> SupervisorState:
    state = read_state(home.state)
    assert state is not None
    return state


def processes_of(home: Home) -> list[psutil.Process]:
    """The supervisor, the servers and all their children."""
    supervisor = psutil.Process(state_of(home).supervisor.pid)
    return [supervisor, *supervisor.children(recursive=True)]


def server(home: Home, name: ServiceName) -> EmbeddedService:
    settings = load_settings(home)
    assert settings is not None
    return services_of(home, settings)[name]


def plain(url: str) -> str:
    """The address as psycopg takes it."""
    return url.replace("+psycopg", "")


def objects(addresses: Addresses):
    return boto3.client(
        "s3",
        endpoint_url=addresses.bucket.endpoint,
        aws_access_key_id=addresses.bucket.access_key,
        aws_secret_access_key=addresses.bucket.secret_key,
        region_name="us-east-1",
    )


def until_ready(service: EmbeddedService, timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            service.make_ready()
            return
        except NotReadyError:
            assert time.monotonic() < deadline, f"{service.name} did not come back"
            time.sleep(0.05)


def test_two_ups_at_once_both_succeed_with_one_supervisor(home: Home) -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", UP, str(home.root)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert all(service.starts == 1 for service in state_of(home).services.values())
    assert (home.logs / "supervisor.log").read_text().count("started, pid") == len(ServiceName)


def test_many_may_look_at_once_at_services_that_run(home: Home) -> None:
    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(lambda _: status(home.root), range(24)))
    assert {(each.service, each.state) for report in reports for each in report.services} == {
        (name, "running") for name in ServiceName
    }


def test_up_again_changes_nothing(home: Home) -> None:
    before = state_of(home)
    up(home.root)
    assert state_of(home) == before


def test_only_the_loopback_is_listened_on(home: Home) -> None:
    listening = {
        connection.laddr.ip
        for process in processes_of(home)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_no_secret_is_in_a_command_line_or_an_open_file(home: Home) -> None:
    settings = load_settings(home)
    assert settings is not None
    secrets = [settings.superuser_password, settings.s3_secret_key, *settings.role_passwords.values()]
    commands = "\n".join(" ".join(process.cmdline()) for process in processes_of(home))
    assert not [secret for secret in secrets if secret in commands]
    readable = [path for path in home.services.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]
    assert not [path for path in readable if any(secret in path.read_text() for secret in secrets)]


async def test_temporal_keeps_histories_and_knows_our_attributes(home: Home) -> None:
    client = await Client.connect(up(home.root).temporal)
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
    assert described.config.workflow_execution_retention_ttl.seconds == RETENTION.total_seconds()
    await client.count_workflows(" AND ".join(f"{name} IS NOT NULL" for name in SEARCH_ATTRIBUTES))


def test_the_migrator_owns_the_schema_and_the_appender_does_not(home: Home) -> None:
    addresses = up(home.root)
    with psycopg.connect(plain(addresses.migrator)) as connection:
        connection.execute("CREATE TABLE kept (line text)")
        connection.execute("INSERT INTO kept VALUES ('row')")
    with psycopg.connect(plain(addresses.appender)) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("CREATE TABLE mine (line text)")
    for url in addresses.database_urls.values():
        with psycopg.connect(plain(url)) as connection:
            rights = connection.execute("SELECT rolsuper, rolcreaterole FROM pg_roles WHERE rolname = current_user")
            assert rights.fetchone() == (False, False)


@pytest.mark.parametrize("name", ServiceName)
def test_a_server_that_is_killed_comes_back_at_its_address(home: Home, name: ServiceName) -> None:
    before = state_of(home).services[name].process
    assert before is not None
    address = server(home, name).address()
    before.send(signal.SIGKILL)
    assert before.wait_gone(5.0)
    until_ready(server(home, name))
    after = state_of(home).services[name]
    assert after.process is not None
    assert after.process != before
    assert (after.last_exit, server(home, name).address()) == (-signal.SIGKILL, address)
    assert f"{name} died" in (home.logs / "supervisor.log").read_text()


def test_status_tells_what_runs(home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setenv("STEPWELL_HOME", str(home.root))
    assert cli.status.run(argparse.Namespace(json=True)) == 0
    printed = capsys.readouterr().out
    report = json.loads(printed)
    assert [service["service"] for service in report["services"]] == list(ServiceName)
    for service in report["services"]:
        assert (service["state"], service["kind"]) == ("running", "embedded")
        assert service["pid"] == state_of(home).services[service["service"]].process.pid
        assert service["version"][0].isdigit()
        assert service["size_bytes"] > 10_000
        assert service["deaths"] == 1
    settings = load_settings(home)
    assert settings is not None
    assert not [secret for secret in settings.role_passwords.values() if secret in printed]


async def test_data_survives_down_and_up_and_down_leaves_no_process(home: Home) -> None:
    addresses = up(home.root)
    objects(addresses).put_object(Bucket="stepwell", Key="kept", Body=b"object")
    client = await Client.connect(addresses.temporal)
    await client.start_workflow("Kept", id="kept", task_queue="nobody")
    ran = processes_of(home)
    assert sorted(down(home.root)) == sorted(ServiceName)

    assert not [process for process in ran if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    assert not is_locked(home.lock)
    assert {path.name for path in home.services.iterdir()} == {"owners", "settings.json", "s3-identities.json"}
    assert down(home.root) == []

    assert up(home.root) == addresses
    with psycopg.connect(plain(addresses.migrator)) as connection:
        assert connection.execute("SELECT line FROM kept").fetchall() == [("row",)]
    assert objects(addresses).get_object(Bucket="stepwell", Key="kept")["Body"].read() == b"object"
    client = await Client.connect(addresses.temporal)
    assert (await client.get_workflow_handle("kept").describe()).workflow_type == "Kept"


def test_every_server_dies_with_a_killed_supervisor(home: Home) -> None:
    ran = processes_of(home)
    state_of(home).supervisor.send(signal.SIGKILL)
    gone, alive = psutil.wait_procs(ran, timeout=10)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE], gone


def test_up_after_that_moves_only_what_someone_took_and_keeps_the_data(home: Home) -> None:
    settings = load_settings(home)
    assert settings is not None
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", settings.ports.s3_volume))
        taken.listen()
        addresses = up(home.root)
    moved = load_settings(home)
    assert moved is not None
    assert moved.ports.model_copy(update={"s3_volume": settings.ports.s3_volume}) == settings.ports
    assert moved.ports.s3_volume != settings.ports.s3_volume
    assert objects(addresses).get_object(Bucket="stepwell", Key="kept")["Body"].read() == b"object"
    with psycopg.connect(plain(addresses.migrator)) as connection:
        assert connection.execute("SELECT line FROM kept").fetchall() == [("row",)]


def test_a_supervisor_that_two_threads_ask_for_starts_once(home: Home) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(up, [home.root, home.root])
    assert first == second
    assert len(read_plan(home.plan)) == len(ServiceName)


def test_purge_removes_everything(home: Home) -> None:
    ran = processes_of(home)
    outside = [Path(path) for launch in read_plan(home.plan).values() for path in launch.leftovers]
    assert any(path.exists() for path in outside), "SeaweedFS no longer puts sockets there"
    assert sorted(purge(home.root)) == sorted(ServiceName)
    assert not home.root.exists()
    assert not [path for path in outside if path.exists()]
    assert not [process for process in ran if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
