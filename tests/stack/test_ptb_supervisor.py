"""An agent under its supervisor: what it finds inside, how it ends, what is written down of it."""

import json
import os
import signal
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from stepwell.ptb.supervisor import AgentEnd, AgentNotStarted, Attended, Mount, Reprompt, start
from stepwell.ptb.supervisor.rules import LimitRule
from stepwell.sandbox.folders import temporary_folder
from stepwell.sandbox.process_tree import descendants
from tests.supervised_agents import ended, lines, order, says, started, until

SECRET = "s3cret-4711"
LOOKS_AROUND = """
echo "in: $PWD and $HOME"
read -r told; echo "told: $told"
echo "key: ${#KEY} $COLOUR"
timer
echo "user: $(id -u) $(getent passwd agent | cut -d: -f6)"
cat /opt/benchmark/items.txt
echo more >> /opt/benchmark/items.txt || echo "no writing there"
echo hello > result; echo note > ~/note; echo scratch > /tmp/scratch
(: > /usr/stepwell) 2>/dev/null || echo "no writing to the system"
echo "others: $(ls /proc | grep -c '^[0-9]')"
python -c 'import ssl; print("authorities:", ssl.create_default_context().cert_store_stats()["x509_ca"] > 0)'
cat /proc/1/environ /proc/1/mem > /dev/null 2>&1 || echo "process 1 is closed"
kill -KILL 1; kill -STOP 1; kill -INT 1; echo "and lives"
printf 'half a line' >&2
"""


@dataclass(frozen=True)
class Visit:
    """An agent that looked around, and ended."""

    root: Path
    agent: Attended
    end: AgentEnd

    @property
    def said(self) -> list[str]:
        """Its lines."""
        return lines(self.agent)


@pytest.fixture(scope="module")
def visit() -> Iterator[Visit]:
    """One agent for all tests that only look at what it found."""
    with temporary_folder("stepwell-test-") as root:
        (root / "benchmark").mkdir()
        (root / "benchmark" / "items.txt").write_text("711\n")
        agent = started(
            root,
            LOOKS_AROUND,
            {"KEY": SECRET},
            stdin="improve the model\n",
            environment={"COLOUR": "blue"},
            secrets=("KEY",),
            mounts=(Mount(source=str(root / "benchmark"), at="/opt/benchmark"),),
        )
        yield Visit(root, agent, ended(agent))


def test_an_agent_that_ends_in_good_order_has_ended_by_itself(visit: Visit) -> None:
    assert (visit.end.ended, visit.end.exit_status, visit.end.prompts) == ("itself", 0, 1)
    assert visit.end.worked_s > 0.0


def test_an_agent_works_in_its_tree_and_has_a_home(visit: Visit) -> None:
    assert "in: /home/agent/task and /home/agent" in visit.said
    assert (visit.root / "work" / "result").read_text() == "hello\n"
    assert (visit.root / "host" / "home" / "note").read_text() == "note\n"


def test_an_agent_is_told_its_prompt_environment_and_secrets(visit: Visit) -> None:
    assert "told: improve the model" in visit.said
    assert f"key: {len(SECRET)} blue" in visit.said


def test_a_secret_is_in_no_file_of_the_supervisors(visit: Visit) -> None:
    files = [path for path in (visit.root / "host").rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_the_folder_of_a_supervisor_is_its_users_alone(visit: Visit) -> None:
    assert stat.S_IMODE((visit.root / "host").stat().st_mode) == 0o700


def test_the_timer_tells_the_time_that_remains(visit: Visit) -> None:
    at = visit.said.index("Remaining time (hours:minutes):")
    hours, minutes = map(int, visit.said[at + 1].split(":"))
    assert 0 <= 60 * hours + minutes <= 60


def test_what_is_mounted_can_be_read_and_not_written(visit: Visit) -> None:
    assert "711" in visit.said
    assert "no writing there" in visit.said
    assert "no writing to the system" in visit.said
    assert (visit.root / "benchmark" / "items.txt").read_text() == "711\n"


def test_an_agent_sees_no_process_but_its_own_and_is_not_root(visit: Visit) -> None:
    (others,) = [line for line in visit.said if line.startswith("others: ")]
    assert int(others.split()[1]) < 10
    assert "user: 1000 /home/agent" in visit.said


def test_an_agent_can_neither_end_nor_read_the_first_process(visit: Visit) -> None:
    assert visit.said[-2:] == ["process 1 is closed", "and lives"]


def test_an_agent_knows_whom_tls_trusts(visit: Visit) -> None:
    assert "authorities: True" in visit.said


def test_each_line_of_the_trace_has_its_time_and_stream(visit: Visit) -> None:
    records = [json.loads(line) for line in Path(visit.end.trace).read_text().splitlines()]
    times = [datetime.fromisoformat(record["time"]) for record in records]
    assert times == sorted(times)
    assert all(time.utcoffset() is not None for time in times)
    assert {record["stream"] for record in records} == {"stdout", "stderr"}


def test_a_last_line_without_an_end_is_in_the_trace(visit: Visit) -> None:
    assert lines(visit.agent, "stderr")[-1] == "half a line"


def test_nothing_is_left_in_tmp(visit: Visit) -> None:
    assert not (visit.root / "host" / "tmp").exists()


@pytest.mark.parametrize(
    ("script", "status"), [("exit 7", 7), ("kill -KILL $$", -9), ("exec no-such-program", 127)], ids=str
)
def test_an_agent_that_ends_otherwise_has_crashed(tmp_path: Path, script: str, status: int) -> None:
    end = ended(started(tmp_path, script))
    assert (end.ended, end.exit_status) == ("crash", status)


def test_an_agent_is_ended_at_the_end_of_its_time(tmp_path: Path) -> None:
    agent = started(tmp_path, "exec sleep 9999", time_s=0.5, grace_s=86400.0)
    end = ended(agent)
    assert (end.ended, end.exit_status) == ("time", -signal.SIGTERM)
    assert end.worked_s >= 0.5


def test_what_does_not_end_when_it_is_asked_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo born; while :; do sleep 0.1; done"
    polite = "trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.1; done"
    agent = started(tmp_path, f"({stubborn}) & {polite}", grace_s=1.0)
    says(agent, "born")
    says(agent, "ready")
    inside = descendants(agent.status().supervisor.pid)
    before_s = agent.status().worked_s
    agent.stop("enough")
    end = ended(agent)
    assert (end.ended, end.exit_status) == ("stopped", 3)
    assert end.worked_s - before_s >= 1.0, "the grace is waited for, since one did not end"
    assert lines(agent)[-1] == "asked"
    assert not any(Path(f"/proc/{pid}").exists() for pid in inside)


def test_what_was_stopped_is_asked_to_end_too(tmp_path: Path) -> None:
    agent = started(tmp_path, "trap 'echo asked; exit' TERM; echo ready; kill -STOP $$; exec sleep 9999")
    says(agent, "ready")
    agent.stop("enough")
    assert ended(agent).ended == "stopped"
    assert lines(agent) == ["ready", "asked"]


def test_what_an_agent_left_running_dies_when_it_ends(tmp_path: Path) -> None:
    agent = started(tmp_path, "(while :; do date > beat; sleep 0.05; done) & setsid sleep 9999 & sleep 1; echo over")
    inside = until(lambda: descendants(agent.status().supervisor.pid))
    assert ended(agent).ended == "itself"
    assert not any(Path(f"/proc/{pid}").exists() for pid in inside)


def test_an_agent_is_stopped_on_request_and_the_first_reason_stays(tmp_path: Path) -> None:
    agent = started(tmp_path, "echo here; exec sleep 9999")
    says(agent, "here")
    agent.stop("the run set was cancelled")
    agent.stop("again")
    end = ended(agent)
    assert (end.ended, end.detail) == ("stopped", "the run set was cancelled")


def test_an_agent_that_has_ended_is_not_stopped_and_keeps_its_end(tmp_path: Path) -> None:
    agent = started(tmp_path, "true")
    end = ended(agent)
    agent.stop("too late")
    agent.renew()
    assert agent.end() == end


def test_an_agent_that_ended_in_good_order_is_told_to_go_on_while_there_is_time(tmp_path: Path) -> None:
    again = Reprompt(
        argv=("bash", "-c", 'echo "$1"; cat /tmp/kept; jobs', "-", "{text}"),
        text="{hours} hours and {minutes} minutes are left",
        least_remaining_s=60.0,
        most=3,
    )
    agent = started(tmp_path, "echo first; echo kept > /tmp/kept", time_s=7300.0, reprompt=again)
    end = ended(agent)
    assert (end.ended, end.prompts) == ("itself", 3)
    assert lines(agent) == ["first", *2 * ["2 hours and 1 minutes are left", "kept"]]


@pytest.mark.parametrize(
    ("script", "least_s"), [("true", 3601.0), ("false", 0.0), ("echo credit exhausted", 0.0)], ids=str
)
def test_an_agent_without_time_order_or_credit_is_not_told_to_go_on(
    tmp_path: Path, script: str, least_s: float
) -> None:
    again = Reprompt(argv=("echo", "{text}"), text="go on", least_remaining_s=least_s)
    credit = (LimitRule(kind="credit", pattern="credit exhausted"),)
    end = ended(started(tmp_path, script, reprompt=again, limit_rules=credit))
    assert end.prompts == 1
    assert [limit.kind for limit in end.limits] == (["credit"] if "credit" in script else [])


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"work": "/no/such/tree"}, "/no/such/tree"),
        ({"mounts": (Mount(source="/no/such/model", at="/model"),)}, "/no/such/model"),
        ({"devices": ("/dev/no-such-device",)}, "/dev/no-such-device"),
        ({"secrets": ("KEY",)}, "KEY"),
        ({"work_at": "/usr/nowhere"}, "/usr/nowhere"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_agent_that_cannot_be_started_is_refused_with_what_is_wrong(
    tmp_path: Path, fields: dict[str, object], said: str
) -> None:
    with pytest.raises(AgentNotStarted, match=said):
        started(tmp_path, "true", **fields)


def test_a_folder_serves_one_agent(tmp_path: Path) -> None:
    ended(started(tmp_path, "true"))
    with pytest.raises(AgentNotStarted, match="not empty"):
        start(order(tmp_path, "true"), tmp_path / "host", {})
    assert os.listdir(tmp_path / "host" / "home") == ["task"]
