"""Ports, locks, processes and files of the embedded services."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.services.embedded import program, size_bytes
from workers.services.errors import ServiceError
from workers.services.home import Home, is_locked, locked, try_lock
from workers.services.plan import (
    Identity,
    Launch,
    ServiceState,
    SupervisorState,
    read_plan,
    read_state,
    write_plan,
    write_state,
)
from workers.services.ports import GRPC_OFFSET, choose_port, is_free, is_pair_free
from workers.services.processes import ProcessId, process_id
from workers.services.settings import Ports, ServiceName, Settings, load_settings, save_settings
from workers.services.supervisor import LOG_LIMIT_BYTES, bound_log, living_owners


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that is made."""
    home = Home.of(tmp_path)
    home.create()
    return home


def listener(port: int) -> socket.socket:
    taken = socket.socket()
    taken.bind(("127.0.0.1", port))
    taken.listen()
    return taken


@pytest.mark.parametrize("offset", [0, GRPC_OFFSET])
def test_a_port_is_taken_if_either_of_its_pair_is(offset: int) -> None:
    port = choose_port(())
    assert is_pair_free(port)
    with listener(port + offset):
        assert not is_pair_free(port)
        assert not is_free(port + offset)


def test_only_ports_that_someone_took_are_chosen_anew() -> None:
    settings = Settings.generate()
    assert settings.with_free_ports(list(ServiceName)) == settings
    with listener(settings.ports.s3_filer + GRPC_OFFSET):
        moved = settings.with_free_ports([ServiceName.S3])
    changed = {name for name in Ports.model_fields if getattr(moved.ports, name) != getattr(settings.ports, name)}
    assert changed == {"s3_filer"}
    assert len(set(moved.ports.model_dump().values())) == len(Ports.model_fields)


def test_every_port_belongs_to_one_service() -> None:
    ports = Settings.generate().ports
    owned = [name for service in ServiceName for name in ports.of(service)]
    assert sorted(owned) == sorted(Ports.model_fields)


def test_settings_are_kept_where_only_their_owner_reads(home: Home) -> None:
    settings = Settings.generate()
    save_settings(home, settings)
    assert load_settings(home) == settings
    assert home.settings.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "{", '{"version": 2}', '{"version": 1, "ports": {}}'])
def test_settings_of_something_else_are_refused(home: Home, text: str) -> None:
    home.settings.write_text(text)
    with pytest.raises(ServiceError, match=r"does not hold settings of this version.*Put the file back"):
        load_settings(home)


def test_a_lock_keeps_others_out_and_is_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path, 1.0):
        assert is_locked(path)
        with pytest.raises(ServiceError, match="another process has been starting or stopping"), locked(path, 0.1):
            pass
    assert not path.exists()


def test_a_lock_on_a_file_that_its_holder_removed_is_none(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = try_lock(path)
    assert first is not None
    path.unlink()
    second = try_lock(path)
    assert second is not None
    assert is_locked(path)
    os.close(first)
    assert is_locked(path)
    os.close(second)


def test_a_process_is_told_from_one_with_the_same_pid() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = process_id(child.pid)
        assert found is not None
        assert found.alive()
        assert not ProcessId(child.pid, found.start_ticks + 1).alive()
        child.kill()
        assert found.wait_gone(5.0), "a zombie does not run"
    assert process_id(child.pid) is None


def test_a_signal_to_a_process_that_ended_reaches_nobody() -> None:
    own = process_id(os.getpid())
    assert own is not None
    ProcessId(own.pid, own.start_ticks - 1).send(signal.SIGKILL)
    assert own.alive()


def test_owners_that_died_are_forgotten(home: Home) -> None:
    own = process_id(os.getpid())
    assert own is not None
    (home.owners / f"{own.pid}-{own.start_ticks}-a").touch()
    dead = home.owners / f"{own.pid}-{own.start_ticks - 1}-b"
    dead.touch()
    assert living_owners(home) == [own]
    assert not dead.exists()


launches = st.builds(
    Launch,
    name=st.text(),
    argv=st.lists(st.text()),
    folder=st.text(),
    log=st.text(),
    environment=st.dictionaries(st.text(), st.text()),
    identity=st.none() | st.builds(Identity, mode=st.sampled_from(["namespace", "setuid"])),
    grace_s=st.floats(0, 100),
    leftovers=st.lists(st.text()),
)


@given(plan=st.dictionaries(st.text(), launches, max_size=3))
def test_a_plan_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, plan: dict[str, Launch]) -> None:
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    assert read_plan(path) == {}
    write_plan(path, plan)
    assert read_plan(path) == plan


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = SupervisorState(
        ProcessId(7, 8), {"a": ServiceState(ProcessId(9, 10), 1, None), "b": ServiceState(None, 4, -9)}
    )
    assert read_state(tmp_path / "state.json") is None
    write_state(tmp_path / "state.json", state)
    assert read_state(tmp_path / "state.json") == state


def test_a_log_that_grew_too_long_is_moved_aside(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("ab") as output:
        output.truncate(LOG_LIMIT_BYTES + 1)
        bound_log(log)
        output.write(b"goes on")
    assert log.read_bytes() == b"goes on"
    assert (tmp_path / "server.log.1").stat().st_size == LOG_LIMIT_BYTES + 1


def test_a_missing_program_says_how_to_get_it() -> None:
    with pytest.raises(ServiceError, match=r"`no-such-server` is missing.*pip install no-such-wheel"):
        program("no-such-server", "no-such-wheel")


def test_a_home_under_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ServiceError, match=r"cannot write to the home .*Set STEPWELL_HOME to a folder"):
        Home.of(tmp_path / "file" / "home").create()


def test_the_size_of_a_folder_is_what_it_takes_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 30)
    (tmp_path / "full").write_bytes(b"x" * 100_000)
    assert 100_000 <= size_bytes(tmp_path) < 200_000
    assert size_bytes(tmp_path / "none") == 0
