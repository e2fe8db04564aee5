"""What a tool set and a renderer are: how a policy's tokens become actions and observations become tokens."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from stepwell.sandbox.protocol import Sandbox

if TYPE_CHECKING:
    # Tasks have digests, whose encoding lies in the package of events, which name stop reasons.
    from stepwell.tasks.task import Task


class StopReason(StrEnum):
    """The agent's own ends; all are outcomes that are graded."""

    FINISHED = "finished"
    """The agent said that it was done."""
    TURNS = "turns"
    """It used up its turns."""
    CONTEXT = "context"
    """The next turn would not have fitted its context."""
    WALL_CLOCK = "wall_clock"
    """The sum of its recorded turns passed its wall clock."""
    STUCK = "stuck"
    """It repeated itself (`stepwell.agent.stuck`)."""


NO_CALL = "no <tool_call> found; call exactly one function"
"""Reason of an `invalid` action whose text called nothing at all."""


@dataclass(frozen=True)
class Action:
    """What a turn's text asks for."""

    tool: str
    """Name of the tool, or `invalid` for text that is no call."""
    arguments: dict[str, str]


@dataclass(frozen=True)
class Observation:
    """What the agent is told after an action."""

    text: str
    finished: bool = False
    """True after the tool that ends the episode; its text is not shown."""


class ToolSet(Protocol):
    """Tools behind one protocol: `compact` for the small policy, `codeact` for the others."""

    name: str

    def system_prompt(self) -> str:
        """What the policy is told of the tools; may be empty."""
        ...

    def parse(self, text: str) -> Action:
        """The action that a turn's text asks for. Pure; never raises on text from a policy."""
        ...

    async def run(self, action: Action, sandbox: Sandbox, task: Task) -> Observation:
        """Carries the action out. A mistake of the agent is an observation; only the sandbox's own failure raises.

        Deterministic for a given tree: recorded actions are run again when a rollout is taken up.
        """
        ...

    async def shell_digest(self, sandbox: Sandbox) -> str:
        """Digest of what the tools keep outside the work tree; empty if they keep nothing."""
        ...


class Renderer(Protocol):
    """Text to tokens and back, for one tokenizer and chat format. What was generated is never tokenised again."""

    stop_token_ids: tuple[int, ...]
    """End of the assistant's turn."""

    def prompt_ids(self, system: str, issue: str) -> tuple[int, ...]:
        """The first context: system text (if any), the issue as user, and the head of the assistant's turn."""
        ...

    def observation_ids(self, text: str) -> tuple[int, ...]:
        """What follows a generated turn that ended with a stop token: the observation and the head of the next turn."""
        ...

    def action_text(self, token_ids: tuple[int, ...]) -> str:
        """Text of a generated turn without its stop token."""
        ...
