"""What a supervisor is told about one agent: the file `order.json` of its folder. No secret stands in it."""

from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from stepwell.ptb.network.policy import NetworkPolicy
from stepwell.ptb.supervisor.rules import LimitRule, Prices, UsageRule

HOME = "/home/agent"
"""The agent's home inside; its own folder, writable, on disk."""
WORK = "/home/agent/task"
"""Where the work tree is inside unless an order says otherwise."""

Seconds = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Mount(_Model):
    """Something of this machine that the agent can read."""

    source: str
    """Absolute path of a file or folder outside."""
    at: str
    """Absolute path inside."""


class Budget(_Model):
    """When the agent is ended at the latest. Only time in which it could work counts."""

    time_s: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    """Working time, over all prompts."""
    tokens: Annotated[int, Field(gt=0)] | None = None
    """Tokens in and out, cached ones too, as the usage rules read them; None: no bound."""
    money: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    """US dollars, as the usage rules read them or `prices` compute them; None: no bound."""
    grace_s: Seconds = 30.0
    """From SIGTERM to SIGKILL, both to everything inside."""


class Limits(_Model):
    """Bounds of everything inside together."""

    memory_bytes: Annotated[int, Field(gt=0)]
    """Resident memory and temporary file systems. Held by a control group, where this process may make one."""
    processes: Annotated[int, Field(gt=0)]
    """Processes and threads. Held by a control group, where this process may make one."""
    disk_bytes: Annotated[int, Field(gt=0)]
    """On disk in the work tree, the home and /tmp, and for what it says and asks for, together; looked at every few
    seconds; more ends the agent."""
    shared_memory_bytes: Annotated[int, Field(gt=0)] = 1 << 30
    """Size of /dev/shm."""


class Reprompt(_Model):
    """How an agent that ended by itself in good order is told to go on."""

    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    """Program and arguments, in which `{text}` stands for the text."""
    text: str
    """In which `{hours}` and `{minutes}` stand for the time that remains."""
    least_remaining_s: Seconds
    """With less than this left the agent is not told to go on."""
    most: Annotated[int, Field(ge=1)] = 100
    """Prompts in all, the first with them."""


class AgentOrder(_Model):
    """One agent: what runs, on what, within which bounds."""

    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    """Program and arguments inside; the program is looked for in PATH of `environment`."""
    stdin: str = ""
    """What the first command can read from its standard input; then that ends."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Of the agent's commands, beside what the sandbox sets itself."""
    secrets: tuple[str, ...] = ()
    """Names of variables whose values are given to `start`, never written to a file."""
    work: str
    """Absolute path of the folder outside that is the agent's work tree, writable."""
    work_at: str = WORK
    """Where that is inside; the current folder of the agent."""
    home: str | None = None
    """Absolute path of a folder outside that is the agent's home (`HOME`), writable; None: an empty one."""
    mounts: tuple[Mount, ...] = ()
    """What it can read: base model, benchmark's tools, Python environment. Later ones may lie within earlier ones."""
    devices: tuple[str, ...] = ()
    """Device files that it can use, such as `/dev/nvidia0`. Not with an image, which has no driver's libraries."""
    image: str | None = None
    """SIF or unpacked root whose system the agent sees, by Apptainer; None: this machine's /usr, by bubblewrap."""
    budget: Budget
    network: NetworkPolicy
    limits: Limits
    lease_s: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 60.0
    """Without a renewal for so long the agent is frozen and its clock stands still; ten times as long ends it."""
    reprompt: Reprompt | None = None
    usage: tuple[UsageRule, ...] = ()
    """How tokens and money are read from what it writes."""
    prices: Prices | None = None
    """What tokens cost, where no usage rule reads a cost."""
    limit_rules: tuple[LimitRule, ...] = ()
    """Signs of a limit of the model's provider, in what it writes."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("work", "work_at", "home"):
            path = getattr(self, name)
            if path is not None and not _is_plain(path):
                raise ValueError(f"{name} is {path!r}: wanted an absolute path without `..`")
        for mount in self.mounts:
            for path in (mount.source, mount.at):
                if not _is_plain(path):
                    raise ValueError(f"a mount names {path!r}: wanted an absolute path without `..`")
        if self.image is not None and self.devices:
            raise ValueError("devices in an image: the libraries of their driver would be missing; leave one out")
        both = set(self.secrets) & set(self.environment)
        if both:
            raise ValueError(f"{', '.join(sorted(both))}: named as a secret and given in the environment: choose one")
        for name in (*self.secrets, *self.environment):
            if not name or "=" in name or "\0" in name:
                raise ValueError(f"{name!r} is no name of a variable")
        if self.prices is not None and (
            any(rule.reads_cost for rule in self.usage) or not any(rule.reads_tokens for rule in self.usage)
        ):
            raise ValueError("prices are for usage rules that read tokens, where none reads `cost`: leave them out")
        reads_money = self.prices is not None or any(rule.reads_cost for rule in self.usage)
        if self.budget.money is not None and not reads_money:
            raise ValueError("a budget in money needs a usage rule that reads `cost`, or prices: else it is never used")
        if self.budget.tokens is not None and not any(rule.reads_tokens for rule in self.usage):
            raise ValueError("a budget in tokens needs a usage rule that reads them: else it is never used")
        return self


def _is_plain(path: str) -> bool:
    return path.startswith("/") and ".." not in PurePosixPath(path).parts and "\0" not in path


Stream = Literal["stdout", "stderr"]
