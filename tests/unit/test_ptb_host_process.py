"""A supervisor is told apart from whatever else may have its number."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from stepwell.ptb.supervisor.host_process import HostProcess, host_process


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that waits to be told."""
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def identity(process: "subprocess.Popen[bytes]") -> HostProcess:
    """Of one that runs."""
    found = host_process(process.pid)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "other",
    [{"start_ticks": 1}, {"boot_id": "another boot"}, {"pid_namespace": "pid:[1]"}],
    ids=lambda o: next(iter(o)),
)
def test_a_process_with_its_number_is_another_and_gets_none_of_its_signals(
    child: "subprocess.Popen[bytes]", other: dict[str, object]
) -> None:
    taken = identity(child).model_copy(update=other)
    assert not taken.alive()
    taken.send(signal.SIGKILL)
    child.communicate(b"\n")
    assert child.returncode == 0


def test_a_process_is_itself_until_it_ends_even_if_nobody_waits_for_it(child: "subprocess.Popen[bytes]") -> None:
    found = identity(child)
    assert found.alive()
    found.send(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not found.alive(), "it is a zombie"
    child.wait()
    assert not found.alive()
    found.send(signal.SIGKILL)
