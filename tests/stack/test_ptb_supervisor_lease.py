"""Who holds an agent: its lease, the deaths of its workers, of its supervisor, and their ends all together."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.ptb.supervisor import AgentHostDied, AgentNotStarted, Attended, end_all, start, take_up
from stepwell.ptb.supervisor.host_folder import HostFolder, write_lasting
from stepwell.sandbox.cgroups import ROOT as CONTROL_GROUPS
from stepwell.sandbox.cgroups import Cgroups
from stepwell.sandbox.process_tree import descendants
from tests.supervised_agents import ended, lines, order, says, started, until, wait_gone

COUNTS = "echo begun >> begun; while [ ! -e enough ]; do echo tick; sleep 0.05; done; echo done"
"""An agent that works until it is told that it is enough."""
LEASE_S = 3.0
"""Ten times as long is left to a slow machine before the agent is given up."""

WORKER = """
import sys, time
from pathlib import Path
from stepwell.ptb.supervisor import AgentOrder, start
agent = start(AgentOrder.model_validate_json(sys.argv[1]), Path(sys.argv[2]), {})
print("attended", flush=True)
while True:
    agent.renew()
    time.sleep(0.05)
"""


@pytest.fixture
def tmp_path_of_agents(tmp_path: Path) -> Iterator[Path]:
    """A folder whose agents are ended with the test, whatever comes of it."""
    yield tmp_path
    end_all(tmp_path, "the test is over", timeout_s=5.0)


def running(mark: str) -> list[int]:
    """Processes that have a mark in their command, wherever they are."""
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in content(path)]


def content(path: Path) -> bytes:
    """What a file holds; nothing once it is gone."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def frozen(agent: Attended) -> None:
    """Waits until nobody's renewal has frozen the agent."""
    until(lambda: agent.status().phase == "frozen")


def test_an_agent_whose_lease_lapsed_stands_still_with_its_clock_and_goes_on_when_it_is_renewed(
    tmp_path_of_agents: Path,
) -> None:
    agent = started(tmp_path_of_agents, COUNTS, lease_s=LEASE_S)
    frozen(agent)
    before, said = agent.status(), len(lines(agent))
    until(lambda: agent.status().writes >= before.writes + 2)
    later = agent.status()
    assert (later.phase, later.worked_s, later.remaining_s) == ("frozen", before.worked_s, before.remaining_s)
    assert len(lines(agent)) == said
    (tmp_path_of_agents / "work" / "enough").touch()
    end = ended(agent)
    assert (end.ended, lines(agent)[-1]) == ("itself", "done")
    assert agent.status().freezes >= 1
    assert end.frozen_s >= 1.0
    assert (tmp_path_of_agents / "work" / "begun").read_text() == "begun\n"


def test_what_the_agent_itself_had_stopped_stays_stopped_when_it_goes_on(tmp_path_of_agents: Path) -> None:
    script = (
        "sleep 9999 & kill -STOP $!; while [ ! -e enough ]; do sleep 0.1; done; "
        "echo child $(cut -d' ' -f3 /proc/$!/stat)"
    )
    agent = started(tmp_path_of_agents, script, lease_s=LEASE_S)
    frozen(agent)
    (tmp_path_of_agents / "work" / "enough").touch()
    ended(agent)
    assert lines(agent) == ["child T"]


def test_a_frozen_agent_can_be_stopped(tmp_path_of_agents: Path) -> None:
    agent = started(tmp_path_of_agents, "trap 'echo asked; exit' TERM; while :; do sleep 0.1; done", lease_s=LEASE_S)
    frozen(agent)
    agent.stop("enough")
    assert until(agent.end).ended == "stopped"
    assert lines(agent) == ["asked"]


def test_an_agent_that_nobody_comes_back_for_is_ended_as_lost(tmp_path_of_agents: Path) -> None:
    agent = started(tmp_path_of_agents, COUNTS, lease_s=0.2)
    host = agent.status().supervisor
    inside = descendants(host.pid)
    wait_gone(host.pid)
    with pytest.raises(AgentHostDied, match="nobody renewed the lease for 2 s"):
        agent.end()
    with pytest.raises(AgentHostDied, match="nobody renewed"):
        take_up(agent.folder)
    assert not any(Path(f"/proc/{pid}").exists() for pid in inside)


def test_another_worker_takes_up_the_agent_of_one_that_was_killed(tmp_path_of_agents: Path) -> None:
    folder = tmp_path_of_agents / "host"
    wanted = order(tmp_path_of_agents, COUNTS).model_dump_json()
    worker = subprocess.Popen([sys.executable, "-c", WORKER, wanted, str(folder)], stdout=subprocess.PIPE)
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"attended\n"
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    agent = take_up(folder)
    said = len(lines(agent))
    until(lambda: len(lines(agent)) > said)
    (tmp_path_of_agents / "work" / "enough").touch()
    assert ended(agent).ended == "itself"
    assert (tmp_path_of_agents / "work" / "begun").read_text() == "begun\n"
    assert take_up(folder).end() == agent.end()


@pytest.mark.parametrize("lease_s", [600.0, LEASE_S], ids=["working", "frozen"])
def test_everything_inside_dies_with_the_supervisor_and_that_is_told_from_an_end(
    tmp_path_of_agents: Path, lease_s: float
) -> None:
    agent = started(tmp_path_of_agents, f"(trap '' TERM HUP; {COUNTS}) & {COUNTS}", lease_s=lease_s)
    says(agent, "tick")
    if lease_s == LEASE_S:
        frozen(agent)
    host = agent.status().supervisor
    inside = descendants(host.pid)
    assert len(inside) >= 4
    host.send(signal.SIGKILL)
    wait_gone(host.pid, *inside)
    with pytest.raises(AgentHostDied, match="gone without an end"):
        agent.end()
    with pytest.raises(AgentHostDied):
        agent.renew()
    with pytest.raises(AgentHostDied):
        take_up(agent.folder)
    until(lambda: not Path(f"/proc/{host.pid}").exists())  # who was its parent has taken leave of it
    Cgroups.find()  # as whoever makes the next sandbox does
    assert not list(CONTROL_GROUPS.glob(f"**/stepwell-{host.pid}-*"))


def test_an_agent_whose_output_cannot_be_written_down_is_ended_as_lost(tmp_path_of_agents: Path) -> None:
    talks = "trap '' XFSZ TERM; echo begun; while :; do head -c 1000000 /dev/zero | tr '\\0' x | fold; done"
    mark = f"mark of {tmp_path_of_agents}"
    wanted = order(tmp_path_of_agents, f"{talks} # {mark}").model_dump_json()
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))\n{WORKER}"
    folder = tmp_path_of_agents / "host"
    worker = subprocess.Popen([sys.executable, "-c", limited, wanted, str(folder)], stderr=subprocess.PIPE, text=True)
    _, said = worker.communicate()
    assert "AgentHostDied" in said
    assert "File too large" in said
    wait_gone(Attended(folder).status().supervisor.pid)
    assert running(mark) == []


def test_a_supervisor_that_is_told_to_end_says_so(tmp_path_of_agents: Path) -> None:
    agent = started(tmp_path_of_agents, COUNTS)
    host = agent.status().supervisor
    inside = descendants(host.pid)
    host.send(signal.SIGTERM)
    wait_gone(host.pid, *inside)
    with pytest.raises(AgentHostDied, match="signal 15"):
        agent.end()


def test_where_no_agent_has_begun_none_will_once_that_was_found(tmp_path: Path) -> None:
    folder = HostFolder(tmp_path / "host")
    folder.root.mkdir()
    write_lasting(folder.order, order(tmp_path, "echo begun > begun").model_dump_json())
    with pytest.raises(AgentHostDied, match="none will"):
        take_up(folder.root)
    late = subprocess.run(
        [sys.executable, "-P", "-m", "stepwell.ptb.supervisor", str(folder.root)],
        input="{}",
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (late.returncode, "given up" in late.stdout) == (1, True)
    assert not (tmp_path / "work" / "begun").exists()
    with pytest.raises(AgentHostDied, match="none will"):
        take_up(folder.root)
    with pytest.raises(AgentNotStarted, match="not empty"):
        start(order(tmp_path, "true"), folder.root, {})


def test_all_agents_of_a_folder_are_ended_together_and_one_that_hangs_is_killed(tmp_path: Path) -> None:
    good = start(order(tmp_path, COUNTS), tmp_path / "agents" / "good", {})
    hung = start(order(tmp_path, COUNTS), tmp_path / "agents" / "hung", {})
    inside = [pid for agent in (good, hung) for pid in descendants(agent.status().supervisor.pid)]
    (tmp_path / "agents" / "other").mkdir()
    os.kill(hung.status().supervisor.pid, signal.SIGSTOP)
    running = end_all(tmp_path / "agents", "the services go down", timeout_s=1.0)
    assert running == [good.folder, hung.folder]
    wait_gone(*inside, good.status().supervisor.pid, hung.status().supervisor.pid)
    assert end_all(tmp_path / "agents", "again") == []
    with pytest.raises(AgentHostDied):
        hung.end()
