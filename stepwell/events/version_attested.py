"""VersionAttested."""

from typing import Literal

from stepwell.events.base import Event


class VersionAttested(Event):
    """An engine proved which weights it serves: it takes no traffic for a version before this event stands."""

    type: Literal["VersionAttested"] = "VersionAttested"
    KIND = "operational"

    version: int
    """Which version."""
    digest: str
    """Digest of the tensors that it was given."""
    probe_difference: float
    """Largest |log-probability by the engine - by the trainer| over the probe, in nats."""
    load: int
    """Which load of this engine, from 0."""
    load_s: float
    """Wall clock of the load and the probe, in seconds."""

    def key(self) -> str:
        return f"attest/{self.load}"
