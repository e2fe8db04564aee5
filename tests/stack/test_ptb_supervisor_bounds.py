"""The bounds of an agent: tokens, money, disk, memory, processes."""

import json
import signal
from pathlib import Path

import pytest

from stepwell.ptb.supervisor import Attended, Budget
from stepwell.ptb.supervisor.rules import Prices, UsageRule
from tests.supervised_agents import LIMITS, ended, lines, started


def end_if_unbounded(agent: Attended) -> None:
    """Skips the test where nothing holds memory and processes."""
    if agent.status().bounded_by == "nothing":
        agent.stop("no control groups here")
        ended(agent)
        pytest.skip("this user may make no control groups")


USES = "for n in 1 2 3 4 5 6 7 8 9; do echo used 100 in, 10 out; sleep 0.3; done; exec sleep 9999"
READS = (UsageRule(pattern=r"used (?P<input>\d+) in, (?P<output>\d+) out", counts="each"),)


@pytest.mark.parametrize(
    ("bound", "wanted"),
    [
        ({"budget": Budget(time_s=3600.0, tokens=250)}, "tokens"),
        ({"budget": Budget(time_s=3600.0, money=0.002), "prices": Prices(input=10.0, output=0.0, cached=0.0)}, "money"),
    ],
    ids=["tokens", "money"],
)
def test_an_agent_that_used_up_a_budget_is_ended(tmp_path: Path, bound: dict[str, object], wanted: str) -> None:
    agent = started(tmp_path, USES, usage=READS, **bound)
    end = ended(agent)
    assert end.ended == wanted
    assert end.tokens == end.tokens_input + end.tokens_output >= (250 if wanted == "tokens" else 220)
    told = [json.loads(line) for line in Path(end.usage_log).read_text().splitlines()]
    assert told[0]["input"] == 100
    assert told[-1]["input"] == end.tokens_input


@pytest.mark.parametrize(
    "script",
    ["head -c 32M /dev/zero > big; exec sleep 9999", "head -c 16M /dev/zero | tr '\\0' x | fold; exec sleep 9999"],
)
def test_an_agent_that_fills_the_disk_is_ended(tmp_path: Path, script: str) -> None:
    limits = LIMITS.model_copy(update={"disk_bytes": 8 << 20})
    end = ended(started(tmp_path, script, limits=limits))
    assert end.ended == "crash"
    assert "on disk" in end.detail


def test_a_control_group_holds_the_number_of_processes(tmp_path: Path) -> None:
    limits = LIMITS.model_copy(update={"processes": 12})
    forks = "import os\nfor n in range(40):\n    if os.fork() == 0: os.execlp('sleep', 'sleep', '9999')"
    agent = started(tmp_path, f'python -c "{forks}"', limits=limits)
    end_if_unbounded(agent)
    ended(agent)
    assert any("BlockingIOError" in line for line in lines(agent, "stderr"))


def test_a_control_group_holds_memory_and_the_agent_lives_to_tell(tmp_path: Path) -> None:
    limits = LIMITS.model_copy(update={"memory_bytes": 128 << 20})
    takes = "python -c 'b\"x\" * (512 << 20)'; echo took $?"
    agent = started(tmp_path, takes, limits=limits)
    end_if_unbounded(agent)
    assert ended(agent).ended == "itself"
    assert lines(agent) == [f"took {128 + signal.SIGKILL}"]
