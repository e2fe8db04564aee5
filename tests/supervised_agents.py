"""Orders of small agents for tests, and waiting for what they and their supervisors come to."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from stepwell.ptb.network.policy import NetworkPolicy
from stepwell.ptb.supervisor import AgentEnd, AgentOrder, Attended, Budget, Limits, start
from stepwell.ptb.supervisor.host_process import host_process

PATIENCE_S = 240.0
"""Only a fault takes so long; a slow machine takes less."""
NO_NETWORK = NetworkPolicy(mode="none")
LIMITS = Limits(memory_bytes=1 << 30, processes=64, disk_bytes=256 << 20)

T = TypeVar("T")


def order(root: Path, script: str, *, time_s: float = 3600.0, grace_s: float = 30.0, **fields: object) -> AgentOrder:
    """An agent that is a script of bash in the work tree `root`/work."""
    work = root / "work"
    work.mkdir(exist_ok=True)
    values: dict[str, object] = {
        "argv": ("bash", "-c", script),
        "work": str(work),
        "budget": Budget(time_s=time_s, grace_s=grace_s),
        "network": NO_NETWORK,
        "limits": LIMITS,
        "lease_s": 600.0,
    }
    return AgentOrder.model_validate(values | fields)


def started(root: Path, script: str, values: Mapping[str, str] | None = None, **fields: object) -> Attended:
    """The agent of such an order, in the folder `root`/host; `values` are those of its secrets."""
    return start(order(root, script, **fields), root / "host", values or {})  # type: ignore[arg-type]


def until(wanted: Callable[[], T | None]) -> T:
    """What the function gives, once that is something."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := wanted()):
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s"
        time.sleep(0.02)
    return found


def ended(agent: Attended) -> AgentEnd:
    """How the agent ended, once it has; its lease is kept up until then."""

    def end() -> AgentEnd | None:
        agent.renew()
        return agent.end()

    found = until(end)
    wait_gone(agent.status().supervisor.pid)
    return found


def wait_gone(*pids: int) -> None:
    """Until none of the processes is there any more."""
    until(lambda: not any(host_process(pid) for pid in pids))


def lines(agent: Attended, stream: str = "stdout") -> list[str]:
    """What the agent wrote to a stream so far."""
    records = (agent.folder / "trace.jsonl").read_text().splitlines()
    return [record["text"] for record in map(json.loads, records) if record["stream"] == stream]


def says(agent: Attended, line: str) -> None:
    """Waits until the agent has written the line."""
    until(lambda: line in lines(agent))
