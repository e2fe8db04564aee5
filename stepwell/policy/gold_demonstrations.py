"""Demonstrations made from gold patches: episodes of our own harness in real sandboxes, in which an expert speaks.

System prompt, call format, observations and token ids are those of a rollout, because it is one: nothing is made up but
what the expert says. Only training tasks are ever demonstrated.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stepwell.agent.chat import ChatRenderer
from stepwell.agent.episode import Episode, EpisodeLimits, PromptTooLong, Sampled, Turn
from stepwell.agent.protocol import StopReason, ToolSet
from stepwell.agent.tool_calls import Parsed, ToolCall
from stepwell.policy.gold_expert import NotDemonstrable, repair_calls
from stepwell.policy.protocol import Generation
from stepwell.rl.samples import TrainSample
from stepwell.sandbox.protocol import SandboxFactory, SandboxLimits
from stepwell.tasks.task import Task

AT_ONCE = 2
"""Sandboxes open at once: each is waited for most of the time."""

_log = logging.getLogger(__name__)


class WrongDemonstration(RuntimeError):
    """A demonstration did not end at the gold patch: the tools or the expert are broken."""


@dataclass(frozen=True)
class Demonstration:
    """One episode as the trainer needs it."""

    task: str
    """Id of its task."""
    row: TrainSample
    """Its tokens. Those of the expert are the generated ones; it is certain of them, so each has log-probability 0."""


@dataclass(frozen=True)
class Demonstrator:
    """Demonstrates tasks to one policy."""

    tools: Callable[[Task], ToolSet]
    """The tool set of an episode on a task."""
    renderer: ChatRenderer
    limits: EpisodeLimits
    factory: SandboxFactory
    sandbox: SandboxLimits

    async def demonstrate(self, tasks: Sequence[Task]) -> list[Demonstration]:
        """Demonstrations in the order of their tasks; those that do not fit the limits of an episode are left out.

        Raises:
            ValueError: a task is not for training.
            WrongDemonstration: one did not end at its gold patch.
            SandboxError: a sandbox failed.
        """
        foreign = next((task.id for task in tasks if task.split != "train"), None)
        if foreign is not None:
            raise ValueError(f"{foreign} is no training task; a warm-up must not see the other splits")
        free = asyncio.Semaphore(AT_ONCE)

        async def one(task: Task) -> Demonstration | None:
            async with free:
                return await self._play(task)

        running = [asyncio.create_task(one(task)) for task in tasks]
        try:
            return [made for made in await asyncio.gather(*running) if made is not None]
        finally:
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _play(self, task: Task) -> Demonstration | None:
        try:
            expert = _Expert(self.renderer, repair_calls(task))
            end, changed = await self._episode(task, expert)
        except (NotDemonstrable, PromptTooLong) as reason:
            _log.info("%s is not demonstrated: %s", task.id, reason)
            return None
        if end is not StopReason.FINISHED:
            _log.info("%s is not demonstrated: its episode ends by its %s", task.id, end)
            return None
        if changed != {path: text.encode() for path, text in task.gold.items() if task.files.get(path) != text}:
            answers = [turn.recorded.payload.observation for turn in expert.turns]
            raise WrongDemonstration(f"the demonstration of {task.id} does not end at its gold patch: {answers}")
        return Demonstration(task.id, expert.row())

    async def _episode(self, task: Task, expert: "_Expert") -> "_Played":
        files = {path: text.encode() for path, text in task.files.items()}
        sandbox = await self.factory.create(files, self.sandbox)
        try:
            episode = Episode(task, self.tools(task), self.renderer, self.limits)
            return _Played(await episode.play(sandbox, expert.say, expert.keep), await sandbox.changed_files())
        finally:
            await sandbox.destroy()


class _Played(NamedTuple):
    end: StopReason
    changed: dict[str, bytes | None]


class _Expert:
    """Says in each turn what it has planned, as far as what it saw bears it out; keeps what came of it."""

    def __init__(self, renderer: ChatRenderer, plan: Sequence[ToolCall]) -> None:
        self.turns: list[Turn] = []
        self._renderer = renderer
        self._plan = plan

    async def say(self, context: tuple[int, ...], room: int, turn: int) -> Sampled:
        """The next call, as tokens; a `Sample`.

        Raises:
            NotDemonstrable: a turn cannot hold it, or it quotes what was not seen.
        """
        call = self._plan[turn]
        quoted = str(call.arguments.get("old_str", "")).split("\n")
        unseen = [line for line in quoted if line not in "".join(self._seen())]
        if unseen:
            raise NotDemonstrable(f"its edit quotes {unseen[0]!r}, which the view did not show")
        text = self._renderer.chat.calls.write(Parsed("", (call,)))
        ids = (*self._renderer.encode(text), self._renderer.stop_token_ids[0])
        if len(ids) > room:
            raise NotDemonstrable(f"a turn of {len(ids)} tokens is needed, there is room for {room}")
        return Sampled(Generation(ids, (0.0,) * len(ids), "stop", 0), "expert", 0.0)

    async def keep(self, turn: Turn, end: StopReason | None) -> None:
        """Keeps a turn; a `Record`."""
        self.turns.append(turn)

    def row(self) -> TrainSample:
        """All turns as one row."""
        payloads = [turn.recorded.payload for turn in self.turns]
        ids = [token for payload in payloads for token in (*payload.delta_ids, *payload.token_ids)]
        said = [
            flag
            for payload in payloads
            for flag in (*[False] * len(payload.delta_ids), *[True] * len(payload.token_ids))
        ]
        return TrainSample(token_ids=tuple(ids), generated=tuple(said), logprobs=(0.0,) * sum(said))

    def _seen(self) -> list[str]:
        return [turn.recorded.payload.observation for turn in self.turns]
