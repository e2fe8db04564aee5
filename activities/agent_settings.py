"""What a recipe says of an agent and its sandbox, as the things that it says."""

from stepwell.agent.chat import FORMATS
from stepwell.agent.codeact import CodeActTools
from stepwell.agent.compact import CompactTools
from stepwell.agent.episode import EpisodeLimits
from stepwell.agent.protocol import ToolSet
from stepwell.agent.tool_calls import CallFormat
from stepwell.recipe.recipe import Recipe
from stepwell.sandbox.protocol import SandboxLimits
from stepwell.tasks.task import Task


def tool_set(recipe: Recipe, task: Task, calls: CallFormat | None = None) -> ToolSet:
    """The recipe's tools, for one episode on a task; `calls` instead of the recipe's form of calls."""
    agent = recipe.agent
    if agent.tools == "compact":
        return CompactTools()
    assert agent.chat is not None  # the recipe fills them in
    assert agent.command_timeout_s is not None
    assert agent.observation_chars is not None
    assert agent.functions is not None
    assert agent.prompt is not None
    return CodeActTools(
        calls or FORMATS[agent.chat].calls,
        command_timeout_s=agent.command_timeout_s,
        observation_chars=agent.observation_chars,
        functions=agent.functions,
        prompt=agent.prompt,
        work=task.work,
    )


def episode_limits(recipe: Recipe) -> EpisodeLimits:
    """The recipe's limits of an episode."""
    agent = recipe.agent
    return EpisodeLimits(
        agent.max_turns,
        agent.max_context_tokens,
        agent.max_turn_tokens,
        agent.wall_clock_s,
        stop_when_stuck=bool(agent.stop_when_stuck),
    )


def sandbox_limits(recipe: Recipe) -> SandboxLimits:
    """The recipe's limits of a sandbox."""
    sandbox = recipe.sandbox
    return SandboxLimits(
        wall_clock_s=sandbox.wall_clock_s, memory_bytes=sandbox.memory_mib << 20, processes=sandbox.processes
    )
