"""What a supervisor says about its agent: the files `state.json` and `end.json` of its folder."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from stepwell.ptb.supervisor.host_process import HostProcess
from stepwell.ptb.supervisor.rules import LimitKind

Phase = Literal["starting", "working", "frozen", "ending", "ended"]
"""The sandbox is being made; the clock runs; nobody renewed the lease, everything inside is stopped and the clock
stands; SIGTERM was sent; nothing is left inside."""

Ended = Literal["itself", "time", "tokens", "money", "crash", "stopped"]
"""By itself with exit status 0; at one of its budgets; with another exit status, by a signal, or over its disk; by
`Attended.stop`."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LimitSeen(_Model):
    """A limit of the model's provider, as a line of the agent's shows it."""

    kind: LimitKind
    time: datetime
    text: str
    """The line's part around what was recognised."""


class AgentStatus(_Model):
    """An agent as it was when its supervisor last wrote: every second, and at each change of phase."""

    supervisor: HostProcess
    """The process that holds the agent."""
    phase: Phase
    started: datetime
    """When the clock began."""
    worked_s: float
    """Time in which the agent could work."""
    remaining_s: float
    """Of its working time."""
    tokens: int
    """In and out, cached ones too."""
    money: float
    """US dollars."""
    prompts: int
    """Given so far."""
    last_output: datetime | None
    """When it last wrote a line; None if it never has."""
    freezes: int
    """How often a lapsed lease has frozen it."""
    bounded_by: Literal["group", "nothing"]
    """What holds memory and processes: a control group, or nothing, where this user may make none."""
    writes: int
    """How often this was written: tells a supervisor that is alive from one that hangs."""


class AgentEnd(_Model):
    """How an agent ended: an outcome of the trial, never an infrastructure failure."""

    ended: Ended
    detail: str
    """In words."""
    exit_status: int | None
    """Of its last command, minus the signal's number if one ended it; None if it was killed before it said."""
    started: datetime
    when: datetime
    worked_s: float
    """Time in which it could work."""
    frozen_s: float
    """Time in which it was frozen."""
    prompts: int
    """Given in all."""
    tokens: int
    """In and out, cached ones too."""
    tokens_input: int
    tokens_output: int
    tokens_cached: int
    money: float
    """US dollars."""
    limits: tuple[LimitSeen, ...]
    """In the order in which they were seen; the first hundred."""
    trace: str
    """Absolute path of its lines, `trace.jsonl`."""
    network_log: str
    """Absolute path of its requests, `network.jsonl`."""
    usage_log: str
    """Absolute path of what was read of its use, `usage.jsonl`."""


class HostLost(_Model):
    """Why an agent has no end of its own: a failure of the infrastructure."""

    reason: str
    when: datetime
    worked_s: float
