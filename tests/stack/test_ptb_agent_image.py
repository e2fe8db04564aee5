"""An agent whose system is an image."""

import signal
from pathlib import Path

import pytest

from stepwell.ptb.network.policy import HostRule, NetworkPolicy
from stepwell.ptb.supervisor import AgentHostDied, Mount, end_all
from stepwell.sandbox.process_tree import descendants
from tests.supervised_agents import ended, lines, says, started, until, wait_gone

LOOKS_AROUND = """
echo "in: $PWD and $HOME"
timer
cat /repository/in_image.txt /opt/benchmark/items.txt
echo hello > result; echo note > ~/note; echo scratch > /tmp/scratch && cat /tmp/scratch
for place in /usr/x /opt/benchmark/x /repository/x; do (: > $place) 2>/dev/null || echo "no writing to $place"; done
ls /usr/bin | grep -c python3.11-config
"""


def test_an_agent_in_an_image_sees_its_system_and_has_its_own_folders(tmp_path: Path, small_sif: Path) -> None:
    (tmp_path / "benchmark").mkdir()
    (tmp_path / "benchmark" / "items.txt").write_text("711\n")
    benchmark = Mount(source=str(tmp_path / "benchmark"), at="/opt/benchmark")
    reached = HostRule(host="api.example", reason="its model")
    policy = NetworkPolicy(mode="allow", allow=(reached,))
    agent = started(tmp_path, LOOKS_AROUND, image=str(small_sif), mounts=(benchmark,), network=policy)
    end = ended(agent)
    assert (end.ended, end.exit_status) == ("crash", 1), "the last of its commands found nothing"
    said = lines(agent)
    assert said[0] == "in: /home/agent/task and /home/agent"
    assert said[3:] == [
        *("of the image", "711", "scratch"),
        *("no writing to /usr/x", "no writing to /opt/benchmark/x", "no writing to /repository/x", "0"),
    ]
    assert (tmp_path / "work" / "result").read_text() == "hello\n"
    assert (tmp_path / "host" / "home" / "note").read_text() == "note\n"


def test_an_agent_in_an_image_is_frozen_goes_on_and_dies_with_its_supervisor(tmp_path: Path, small_sif: Path) -> None:
    agent = started(tmp_path, "while :; do echo tick; sleep 0.1; done", image=str(small_sif), lease_s=3.0)
    says(agent, "tick")
    until(lambda: agent.status().phase == "frozen")
    said = len(lines(agent))
    agent.renew()
    until(lambda: len(lines(agent)) > said)
    host = agent.status().supervisor
    inside = descendants(host.pid)
    host.send(signal.SIGKILL)
    wait_gone(host.pid, *inside)
    with pytest.raises(AgentHostDied):
        agent.end()
    assert end_all(tmp_path, "again") == []
