"""GroupClosed."""

from enum import StrEnum
from typing import Literal

from stepwell.events.base import Event
from stepwell.events.children import ChildHead


class Fate(StrEnum):
    """What became of a prompt: exactly one of these."""

    TRAINED = "trained"
    """Its group goes into its step's batch."""
    VALIDATED = "validated"
    """Its group counts in a validation."""
    SKIPPED = "skipped"
    """An operator took it out."""
    QUARANTINED = "quarantined"
    """Its data are broken: too long a prompt, a task that cannot be graded."""
    ABANDONED = "abandoned"
    """Infrastructure failed it until its budget was used up."""


class GroupClosed(Event):
    """A prompt group ended with a fate. Last event of its stream."""

    type: Literal["GroupClosed"] = "GroupClosed"
    MEASURED = frozenset({"children"})

    fate: Fate
    """What became of the prompt."""
    scores: list[float | None]
    """Score of each sample, None where it failed."""
    children: list[ChildHead]
    """Heads of the rollout streams."""
    rollout_facts: str
    """Digest over what the rollouts did."""
    cause: str = ""
    """In words, where the fate is not the good one."""

    def key(self) -> str:
        return "closed"
