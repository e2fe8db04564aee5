"""Which rollouts to show as examples: the first and the newest of training, solved and not, and what they said."""

from dataclasses import dataclass
from typing import NamedTuple

from stepwell.events import RolloutGraded
from stepwell.events.base import Event
from stepwell.report.patch import FilePatch
from stepwell.tasks.grading.verdict import Score


@dataclass(frozen=True)
class TranscriptTurn:
    """One turn as a reader sees it."""

    tool: str
    """Name of the tool that was called, `invalid` for text that is no call."""
    arguments: dict[str, str]
    """What it was called with."""
    observation: str
    """What the agent was told."""
    generated_tokens: int
    """Tokens of the turn."""
    text: str | None = None
    """What the policy wrote, control tokens included; None where its tokenizer is not stored."""


@dataclass(frozen=True)
class Transcript:
    """A rollout as a reader sees it."""

    title: str
    """Why it is shown, and its place."""
    stream: str
    """Its stream, by which it is found again."""
    score: float
    """Of its verdict."""
    turns: tuple[TranscriptTurn, ...]
    """In order."""
    task: str = ""
    """Id of its task; empty where that is not stored."""
    issue: str = ""
    """What the agent was told."""
    version: int | None = None
    """Weight version that generated it."""
    end: str = ""
    """Why the agent's episode ended."""
    advantage: float | None = None
    """In its step's batch; None where it has no part in one."""
    mask: str = ""
    """Why it has no part in the loss; empty if it has."""
    patch: tuple[FilePatch, ...] | None = None
    """What it changed; None where that is not stored."""
    verdict: Score | None = None
    """Result of each hidden test; None where it is not stored."""


class Example(NamedTuple):
    """A rollout that is worth showing."""

    why: str
    """Why it is shown."""
    stream: str
    """Its stream."""
    score: float
    """Of its verdict."""


class Examples:
    """Streams of the rollouts that are worth showing."""

    def __init__(self) -> None:
        self._picked: dict[str, Example] = {}

    def see(self, stream: str, event: Event) -> None:
        """A graded training rollout may be the first or the newest of its kind."""
        if not isinstance(event, RolloutGraded) or not stream.split("/")[2].isdigit():
            return
        kind = "solved" if event.score == 1.0 else "not solved"
        for why in (f"First {kind}", f"Newest {kind}"):
            if why.startswith("Newest") or why not in self._picked:
                self._picked[why] = Example(why, stream, event.score)

    @property
    def rollouts(self) -> list[Example]:
        """Each rollout once."""
        shown: dict[str, Example] = {}
        for why in ("First solved", "First not solved", "Newest solved", "Newest not solved"):
            if why in self._picked:
                shown.setdefault(self._picked[why].stream, self._picked[why])
        return list(shown.values())
