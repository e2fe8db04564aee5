"""What passes between the run's workflow and engines."""

from stepwell.contracts.base import Contract


class EngineRef(Contract):
    """An engine that holds a lease."""

    engine: str
    """Its id."""
    queue: str
    """Its own task queue."""


class EngineList(Contract):
    """Engines that are alive for a run."""

    engines: tuple[EngineRef, ...]
    """Sorted by id."""


class LoadRequest(Contract):
    """Asks an engine to serve a version."""

    run: str
    """Run."""
    version: int
    """Version."""


class Attestation(Contract):
    """An engine's proof of what it serves."""

    engine: str
    """Engine."""
    version: int
    """Version."""
    digest: str
    """Digest of the tensors that it was given."""
    probe_difference: float
    """Largest difference from the trainer's log-probabilities over the probe, in nats."""
