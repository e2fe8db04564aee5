"""What the agent of a trial is told: the prompt of its rules, held against what the recipe enforces."""

from dataclasses import replace

from stepwell.events.trial_created import TrialCreated
from stepwell.ptb.benchmarks import benchmark
from stepwell.ptb.prompts import Claim, Enforced, Prompt, RuleCheck, Task, honest_claims, settled, trial_prompt
from stepwell.ptb.scaffolds import scaffold
from stepwell.ptb.trials.loading import regime_of
from stepwell.ptb.trials.manifest import MODEL_FOLDER
from stepwell.ptb.trials.recipe import AgentSection, RunSetRecipe
from stepwell.ptb.trials.workspace import BASE_MODEL, TOOLS


def briefing_of(recipe: RunSetRecipe, created: TrialCreated) -> Prompt:
    """What an agent is told.

    Args:
        recipe: Of the run set.
        created: The trial.

    Raises:
        PromptContradicts: it says what is not so, and the recipe refuses that.
    """
    agent = recipe.agent(created.agent)
    rules = regime_of(recipe).rules
    task = Task(
        base_model=created.base_model,
        benchmark=created.benchmark,
        base_at=BASE_MODEL,
        submission=MODEL_FOLDER,
        decontamination=f"python {TOOLS}/contamination_check.py FOLDER",
        judged=benchmark(created.benchmark).needs == "judge",
    )
    held = enforced_of(recipe, agent)
    honest = trial_prompt(task, held, rules)
    claims = [_said(statement.claim, recipe) for statement in honest.statements]
    unsaid = [claim for claim in honest_claims(held) if claim.tag not in {each.tag for each in claims}]
    told = trial_prompt(task, held, rules, [*claims, *(_said(claim, recipe) for claim in unsaid)])
    return settled(told, held, recipe.prompt.contradictions).for_scaffold(scaffold(agent.scaffold).addition)


def enforced_of(recipe: RunSetRecipe, agent: AgentSection) -> Enforced:
    """What holds for an agent, whatever its prompt says."""
    policy = recipe.network
    rules = {"allow": policy.allow, "deny": policy.deny}.get(policy.mode, ())
    checks: list[RuleCheck] = ["test_data", "base_model"]
    if recipe.judges is not None:
        checks += recipe.judges.charges
    return Enforced(
        internet=policy.mode,
        hosts=tuple(rule.host for rule in rules),
        hours=recipe.hours_of(agent),
        gpus=recipe.gpus,
        tokens=agent.tokens,
        money=agent.money,
        evaluation="own",
        decontamination=True,
        checks=tuple(checks),
    )


def _said(claim: Claim, recipe: RunSetRecipe) -> Claim:
    """The claim as the recipe wants it said."""
    value = recipe.prompt.says.get(claim.tag)
    return claim if value is None else replace(claim, value=value, hosts=())
