"""TurnRecorded."""

from typing import Literal

from stepwell.events.base import Event


class TurnRecorded(Event):
    """A turn of a rollout happened: recorded before the next begins."""

    type: Literal["TurnRecorded"] = "TurnRecorded"
    MEASURED = frozenset({"engine", "generate_s", "tool_s"})

    turn: int
    """From 0."""
    epoch: int
    """How often the rollout was started over before this turn."""
    payload: str
    """Blob: the turn's tokens, log-probabilities, action and observation (`stepwell.agent.turn.TurnPayload`)."""
    version: int
    """Weight version of every generated token."""
    prompt_tokens: int
    """Tokens of context before the generated ones."""
    generated_tokens: int
    """Tokens generated."""
    tool: str
    """Name of the tool that was called."""
    tree: str
    """Digest of the work tree after the action; of a turn that a harness of its own asked for, before it."""
    engine: str
    """Id of the engine."""
    generate_s: float
    """Wall clock of the generation, in seconds."""
    tool_s: float
    """Wall clock of the action, in seconds."""

    def key(self) -> str:
        return f"turn/{self.epoch}/{self.turn}"
