"""RolloutEnded."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from stepwell.agent.protocol import StopReason
from stepwell.events.base import Event


def _same(body: dict[str, Any]) -> dict[str, Any]:
    """Schema 2 only adds a reason."""
    return body


class RolloutEnded(Event):
    """The agent's episode ended by itself."""

    type: Literal["RolloutEnded"] = "RolloutEnded"

    SCHEMA = 2
    UPCASTS: ClassVar[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {1: _same}

    reason: StopReason
    """Why."""
    epoch: int
    """Epoch whose turns count."""
    turns: int
    """Turns in that epoch."""
    generated_tokens: int
    """Tokens generated in them."""
    total_tokens: int
    """Length of the whole sequence, or of all its rows together."""
    content: str
    """Digest of the row of tokens that a trainer makes of it (`stepwell.rl.samples.TrainSample`). Where its turns make
    several, digest over those of the rows, which `RowsRecorded` lists; empty in records from before it did."""
    changed: str
    """Blob: the files that differ from the task's (`stepwell.agent.turn.ChangedFiles`)."""
    tree: str
    """Digest of the work tree at the end."""
    verdict_key: str
    """Digest of task, tree and grader: what the verdict depends on."""

    def key(self) -> str:
        return "ended"
