"""What a supervisor is told about a trial's agent, out of the recipe, its scaffold and its files."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import stepwell
from stepwell.ptb.scaffolds import ScaffoldOrder, scaffold
from stepwell.ptb.supervisor import AgentOrder, Budget, LimitRule, Limits, Mount, Reprompt, UsageRule
from stepwell.ptb.supervisor.sandbox import python_environment
from stepwell.ptb.trials.recipe import AgentSection, RunSetRecipe
from stepwell.ptb.trials.workspace import BASE_MODEL, LIBRARY, TOOLS

TEST_S = 900.0
"""Working time of the test before the clock: importing torch takes minutes on a busy machine."""
LEAST_REMAINING_S = 1800.0
"""With less left an agent that stopped is not told to go on: the published variants' bound."""


@dataclass(frozen=True)
class AgentPlaces:
    """Folders of this host that an agent works on."""

    work: Path
    home: Path
    tools: Path
    """The benchmark's, which it reads."""
    base_model: Path


def probe_order(recipe: RunSetRecipe, agent: AgentSection, places: AgentPlaces, version: tuple[str, ...]) -> AgentOrder:
    """A program in the agent's own sandbox, on its own files, that tells whether it has all that it needs, and which
    version its scaffold is. It leaves the files as they were.

    Args:
        recipe: Of the run set.
        agent: Whose environment it is.
        places: Its files.
        version: Command that prints the scaffold's version; empty if it has none.
    """
    commands = [
        f"test -r {BASE_MODEL}/config.json",
        f"test -r {TOOLS}/evaluation.json",
        "test -r evaluate.py",
        "touch .written-before-the-clock && rm .written-before-the-clock",
        'touch "$HOME/.written-before-the-clock" && rm "$HOME/.written-before-the-clock"',
        "timer",
        *(["python -c 'import torch, transformers'"] if recipe.python else []),
        *(["nvidia-smi --list-gpus"] if recipe.gpus else []),
    ]
    if version:
        commands.append('echo "version: $("$@" 2>&1 | head -n 1)"')
    script = "set -e\n" + "\n".join(commands) + "\n"
    argv = ("/bin/sh", "-c", script, "test", *version)
    return _order(recipe, agent, places, argv, {}, Budget(time_s=TEST_S))


def command_of(agent: AgentSection, prompt: str) -> ScaffoldOrder:
    """The commands of an agent. Its provider's own search is off: no policy of ours would reach it.

    Args:
        agent: With its scaffold.
        prompt: What it is told.
    """
    return scaffold(agent.scaffold).order(prompt, agent.model, agent.effort, command=agent.command)


def agent_order(
    recipe: RunSetRecipe, agent: AgentSection, places: AgentPlaces, made: ScaffoldOrder, reprompt: str
) -> AgentOrder:
    """The agent itself.

    Args:
        recipe: Of the run set.
        agent: One of its agents.
        places: Its files.
        made: Its scaffold's commands.
        reprompt: What it is told when it stops early, with `{hours}` and `{minutes}`.
    """
    declared = scaffold(agent.scaffold)
    budget = Budget(time_s=3600 * recipe.hours_of(agent), tokens=agent.tokens, money=agent.money)
    order = _order(recipe, agent, places, made.argv, made.environment, budget)
    again = Reprompt(argv=made.again, text=reprompt, least_remaining_s=LEAST_REMAINING_S) if agent.reprompt else None
    usage = tuple(UsageRule(pattern=each.pattern, counts=each.counts) for each in declared.trace.usage)
    stops = tuple(LimitRule(kind=each.kind, pattern=each.pattern) for each in declared.trace.stops)
    more = {"reprompt": again, "usage": usage, "prices": agent.prices, "limit_rules": stops}
    # Checked again as a whole: a budget in tokens needs a rule that reads them.
    return AgentOrder.model_validate({**order.model_dump(), **more})


def _order(
    recipe: RunSetRecipe,
    agent: AgentSection,
    places: AgentPlaces,
    argv: tuple[str, ...],
    environment: Mapping[str, str],
    budget: Budget,
) -> AgentOrder:
    path = "/opt/bin:/usr/local/bin:/usr/bin:/bin"
    paths = {"PATH": f"{sys.prefix}/bin:{path}"} if recipe.python else {}
    code = Mount(source=str(Path(str(stepwell.__file__)).parent), at=f"{LIBRARY}/stepwell")
    own = [Mount(source=mount.source, at=mount.at) for mount in (*recipe.mounts, *agent.mounts)]
    return AgentOrder(
        argv=argv,
        environment={**paths, **environment},
        secrets=agent.secrets,
        work=str(places.work),
        home=str(places.home),
        mounts=(
            *(python_environment() if recipe.python else ()),
            code,
            Mount(source=str(places.tools), at=TOOLS),
            Mount(source=str(places.base_model), at=BASE_MODEL),
            *own,
        ),
        devices=tuple(str(device) for device in sorted(Path("/dev").glob("nvidia*"))) if recipe.gpus else (),
        image=recipe.image,
        budget=budget,
        network=recipe.network,
        limits=Limits(
            memory_bytes=recipe.bounds.memory_mib << 20,
            processes=recipe.bounds.processes,
            disk_bytes=recipe.bounds.disk_mib << 20,
        ),
        lease_s=recipe.failures.lease_s,
    )
