"""HeadSigned."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from stepwell.events.base import Event


class StreamHead(BaseModel):
    """Where a stream ended when it was looked at."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stream: str
    """Its name."""
    seq: int
    """Sequence number of its last event."""
    head: str
    """Hash of that event."""


class HeadSigned(Event):
    """The heads of the run's own streams, signed when a step was completed or the run ended. Stream `seal/<run>`.

    The run's stream commits to prompts, rollouts and verdicts, so the signature covers everything but what operators
    asked, engines attested and the watcher saw: those streams are named beside it.
    """

    type: Literal["HeadSigned"] = "HeadSigned"
    KIND = "operational"
    MEASURED = frozenset({"before", "heads", "signature"})

    at: str
    """The step that was completed, or `finished`."""
    heads: list[StreamHead]
    """Heads of `run/<run>`, `weights/<run>`, `operator/<run>`, `health/<run>` and of each engine's stream, by name;
    those that exist."""
    before: str
    """Signature of the signed head before this one; empty for the first."""
    signature: str
    """Ed25519 over `stepwell.signing.head_message`, in hex."""

    def key(self) -> str:
        return f"head/{self.at}"
