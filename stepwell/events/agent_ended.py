"""AgentEnded."""

from typing import Literal

from stepwell.events.base import Event


class AgentEnded(Event):
    """The agent ended, or was ended."""

    type: Literal["AgentEnded"] = "AgentEnded"
    MEASURED = frozenset({"tokens", "money", "worked_s", "trace", "events", "traffic"})

    epoch: int
    """Start that this is of."""
    ended: Literal["itself", "time", "tokens", "money", "crash"]
    """What ended it."""
    exit_status: int | None
    """Of its program; negative for a signal; None if it was not its program that ended."""
    prompts: int
    """How often it was told something: 1, and one for each time that it was told to go on."""
    limit: str
    """What the trace says of a provider's limit that was met; empty for none."""
    secrets: list[str]
    """Names of secrets that were found where they must not be: the trial fails."""
    tokens: int | None
    """In all, as far as the trace tells."""
    money: float | None
    """US dollars, likewise."""
    worked_s: float
    """Seconds that it could work."""
    trace: str
    """Blob: what it said and did, each line with its time, redacted; empty if a secret survived in it."""
    events: str
    """Blob: the same in the one schema (`stepwell.ptb.traces`); empty likewise."""
    traffic: str
    """Blob: what it asked of the network; empty if it had none."""

    def key(self) -> str:
        return f"ended/{self.epoch}"
