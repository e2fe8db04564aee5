"""The episode loop: context, generation, action, observation; each turn is recorded before the next begins.

Token in, token out: the context is the recorded ids, and what was generated is never tokenised again. A rollout that
is taken up replays its recorded actions in a fresh sandbox and goes on after the last one.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from stepwell.agent.protocol import Renderer, StopReason, ToolSet
from stepwell.agent.stuck import why_stuck
from stepwell.agent.turn import RecordedTurn, TurnPayload
from stepwell.policy.protocol import Generation
from stepwell.sandbox.protocol import Sandbox
from stepwell.tasks.task import Task


class PromptTooLong(ValueError):
    """The task's prompt leaves no room for an answer in the policy's context: broken data, not a failure of ours."""


class Divergence(Exception):
    """Replaying the recorded actions gave another work tree, shell or observation than the recorded one."""

    def __init__(self, turn: int, expected: str, found: str) -> None:
        super().__init__(f"after turn {turn} there is {found}, recorded is {expected}")
        self.turn, self.expected, self.found = turn, expected, found


@dataclass(frozen=True)
class EpisodeLimits:
    """Where an episode ends at the latest."""

    max_turns: int
    max_context_tokens: int
    """Prompt, observations and generated tokens together."""
    max_turn_tokens: int
    """Tokens generated in one turn."""
    wall_clock_s: float
    """Sum of the recorded turns' time."""
    stop_when_stuck: bool = False
    """Whether an agent that goes round in circles has ended."""


@dataclass(frozen=True)
class Sampled:
    """A generation and where it came from."""

    generation: Generation
    engine: str
    """Id of the engine."""
    seconds: float


@dataclass(frozen=True)
class Turn:
    """A turn that has just happened, to be recorded."""

    index: int
    recorded: RecordedTurn
    prompt_tokens: int
    sampled: Sampled
    tool_s: float


Sample = Callable[[tuple[int, ...], int, int], Awaitable[Sampled]]
"""Generates: context ids, most tokens, index of the turn."""
Record = Callable[[Turn, StopReason | None], Awaitable[None]]
"""Stores a turn, and the episode's end if it was the last; returns when it is durable."""


class Episode:
    """One rollout of a policy on a task."""

    def __init__(self, task: Task, tools: ToolSet, renderer: Renderer, limits: EpisodeLimits) -> None:
        self._task = task
        self._tools = tools
        self._renderer = renderer
        self._limits = limits
        self._context: list[int] = []
        self._turns: list[RecordedTurn] = []

    async def replay(self, recorded: Sequence[RecordedTurn], sandbox: Sandbox) -> None:
        """Brings a fresh sandbox and the context to where the recorded turns end.

        Raises:
            Divergence: an action did not do what it did when it was recorded.
        """
        for index, turn in enumerate(recorded):
            observation = await self._tools.run(turn.payload.action, sandbox, self._task)
            found = await sandbox.tree_digest()
            if found != turn.tree:
                raise Divergence(index, turn.tree, found)
            shell = await self._tools.shell_digest(sandbox)
            if shell != turn.payload.shell:
                raise Divergence(index, f"shell {turn.payload.shell}", f"shell {shell}")
            if observation.text != turn.payload.observation:
                raise Divergence(index, *(_digest_of(text) for text in (turn.payload.observation, observation.text)))
            self._keep(turn)

    def ended(self) -> StopReason | None:
        """Why no further turn may begin, None if one may.

        Raises:
            PromptTooLong: not even a first turn fits.
        """
        limits = self._limits
        if self._turns and self._turns[-1].payload.finished:
            return StopReason.FINISHED
        if len(self._turns) >= limits.max_turns:
            return StopReason.TURNS
        if limits.stop_when_stuck and why_stuck([turn.payload for turn in self._turns]) is not None:
            return StopReason.STUCK
        if sum(turn.seconds for turn in self._turns) >= limits.wall_clock_s:
            return StopReason.WALL_CLOCK
        if len(self._context) + len(self._delta()) >= limits.max_context_tokens:
            if not self._turns:
                raise PromptTooLong(
                    f"the prompt of task {self._task.id} has {len(self._delta())} tokens, the context holds "
                    f"{limits.max_context_tokens}: raise agent.max_context_tokens or leave the task out"
                )
            return StopReason.CONTEXT
        return None

    async def play(self, sandbox: Sandbox, sample: Sample, record: Record) -> StopReason:
        """Goes on, turn by turn, to the end; an episode that had ended is not touched."""
        end = self.ended()
        while end is None:
            turn = await self._turn(sandbox, sample)
            self._keep(turn.recorded)
            end = self.ended()
            await record(turn, end)
        return end

    async def _turn(self, sandbox: Sandbox, sample: Sample) -> Turn:
        delta = self._delta()
        context = (*self._context, *delta)
        room = min(self._limits.max_turn_tokens, self._limits.max_context_tokens - len(context))
        sampled = await sample(context, room, len(self._turns))
        generation = sampled.generation
        began = time.monotonic()
        action = self._tools.parse(self._renderer.action_text(generation.token_ids))
        observation = await self._tools.run(action, sandbox, self._task)
        tree = await sandbox.tree_digest()
        shell = await self._tools.shell_digest(sandbox)
        tool_s = time.monotonic() - began
        payload = TurnPayload(
            delta_ids=delta,
            token_ids=generation.token_ids,
            logprobs=generation.logprobs,
            finish_reason=generation.finish_reason,
            action=action,
            observation=observation.text,
            finished=observation.finished,
            shell=shell,
        )
        recorded = RecordedTurn(payload, tree, sampled.seconds + tool_s)
        return Turn(len(self._turns), recorded, len(context), sampled, tool_s)

    def _keep(self, turn: RecordedTurn) -> None:
        self._context += turn.payload.delta_ids
        self._context += turn.payload.token_ids
        self._turns.append(turn)

    def _delta(self) -> tuple[int, ...]:
        """What the policy is told next; a turn that was cut off is closed for it first."""
        if not self._turns:
            return self._renderer.prompt_ids(self._tools.system_prompt(), self._task.issue)
        last = self._turns[-1].payload
        closing = self._renderer.stop_token_ids[:1] if last.finish_reason == "length" else ()
        return (*closing, *self._renderer.observation_ids(last.observation))


def _digest_of(observation: str) -> str:
    return f"observation {hashlib.sha256(observation.encode()).hexdigest()}"
