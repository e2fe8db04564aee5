"""KeyDeclared."""

from typing import Literal

from stepwell.events.base import Event


class KeyDeclared(Event):
    """The key by which the run's heads are signed. First event of `seal/<run>`."""

    type: Literal["KeyDeclared"] = "KeyDeclared"
    KIND = "operational"

    algorithm: Literal["ed25519"] = "ed25519"
    """Of RFC 8032."""
    public_key: str
    """Its 32 bytes, in hex. The private half is in no store."""

    def key(self) -> str:
        return "declared"
