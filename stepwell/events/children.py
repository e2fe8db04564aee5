"""A parent's commitment to the streams below it."""

from pydantic import BaseModel, ConfigDict

from stepwell.events.canonical import canonical_json, digest_of_json


class ChildHead(BaseModel):
    """Where a child stream ended."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stream: str
    """Name of the stream."""
    seq: int
    """Sequence number of its last event."""
    head: str
    """Hash of that event: commits to every byte of the stream."""
    facts: str
    """Facts digest of the stream: commits to what was done, not to how often it was disturbed."""


class Commitment(BaseModel):
    """Digests over a list of child heads, sorted by stream name. The list itself is a blob."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int
    """Number of children."""
    heads: str
    """SHA-256 of the blob with the list: canonical JSON of `ChildHead`s."""
    facts: str
    """Digest over (stream, facts) of each child."""


def commitment_blob(children: list[ChildHead]) -> bytes:
    """The list as it is stored."""
    ordered = sorted(children, key=lambda child: child.stream)
    return canonical_json([child.model_dump() for child in ordered])


def facts_of_children(children: list[ChildHead]) -> str:
    """Digest over what the children did."""
    ordered = sorted(children, key=lambda child: child.stream)
    return digest_of_json([[child.stream, child.facts] for child in ordered])
