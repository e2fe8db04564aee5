"""What goes over the wire: JSON of the protocol's own dataclasses. Floats keep every bit."""

from dataclasses import dataclass

from pydantic import TypeAdapter

from stepwell.policy.protocol import GenerateRequest, Generation

GENERATE_PATH = "/v1/generate"
HEALTH_PATH = "/v1/health"


@dataclass(frozen=True)
class EngineHealth:
    """How an engine stands."""

    version: int | None
    """Weight version it serves; none before the first load."""
    in_flight: int
    """Requests being generated."""
    tokens_generated: int
    """Since the process started."""
    busy_s: float
    """Seconds since the process started in which at least one request was in flight."""
    draining: bool
    """True while it takes no new request."""


@dataclass(frozen=True)
class Refusal:
    """Body of every answer but 200."""

    error: str


REQUEST: TypeAdapter[GenerateRequest] = TypeAdapter(GenerateRequest)
GENERATION: TypeAdapter[Generation] = TypeAdapter(Generation)
HEALTH: TypeAdapter[EngineHealth] = TypeAdapter(EngineHealth)
REFUSAL: TypeAdapter[Refusal] = TypeAdapter(Refusal)
