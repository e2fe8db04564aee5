"""One request on its way through the proxy, and what is logged of it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import Literal


@dataclass(frozen=True)
class LoggedRequest:
    """One request, as it is logged when it has ended."""

    time: str
    """When it came, UTC."""
    method: str
    host: str
    port: int
    verdict: Literal["allowed", "refused", "failed"]
    """Passed on; held back; allowed, and the host was not reached."""
    reason: str
    address: str | None
    """Where it was passed on to."""
    sent_bytes: int
    """To the host."""
    received_bytes: int
    duration_s: float


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass
class Passage:
    """A request on its way; what is not known yet is empty."""

    began: float = field(default_factory=monotonic)
    """Reading of the monotonic clock."""
    time: str = field(default_factory=_now)
    method: str = ""
    host: str = ""
    port: int = 0
    verdict: Literal["allowed", "refused", "failed"] = "refused"
    reason: str = ""
    address: str | None = None
    is_open: bool = False
    """Whether the client was told that its tunnel stands: from then on nothing but the host's bytes may follow."""
    sent_bytes: int = 0
    received_bytes: int = 0

    def logged(self) -> LoggedRequest:
        """It as it stands."""
        return LoggedRequest(
            self.time,
            self.method,
            self.host,
            self.port,
            self.verdict,
            self.reason,
            self.address,
            self.sent_bytes,
            self.received_bytes,
            round(monotonic() - self.began, 3),
        )
