"""An agent worked no longer than it was given, and what ended it could end it."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events import AgentEnded
from stepwell.ptb.supervisor.order import Budget
from stepwell.ptb.trials.audited import AuditedTrial, RunSetRecord
from stepwell.ptb.trials.recipe import RunSetRecipe

HOLDS = "each agent's working time is within its budget and the time it is given to end, and what ended it is so"
UNIT = "agents"

GRACE_S = float(Budget.model_fields["grace_s"].default)
"""From SIGTERM to SIGKILL."""
SLACK_S = 30.0
"""More than a supervisor on a busy host takes to see that its agent's time is over, and that nothing is left of it."""


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each agent that ended, in starts that are void too."""
    if record.recipe is None:
        return  # the rule `cells` says so
    for trial in record.trials:
        for seq, ended in trial.stream.every(AgentEnded):
            _check(record.recipe, trial, seq, ended, tally)


def _check(recipe: RunSetRecipe, trial: AuditedTrial, seq: int, ended: AgentEnded, tally: Tally) -> None:
    agent = trial.agent
    if agent is None:
        return  # the rules `cells` and `phases` say so
    budget_s = 3600 * recipe.hours_of(agent)
    most_s = budget_s + GRACE_S + SLACK_S
    what = f"worked for {ended.worked_s:.1f} s, allowed were {budget_s:g} s and {GRACE_S + SLACK_S:g} s to end"
    tally.expect(0 <= ended.worked_s <= most_s, trial.name, seq, what)
    if ended.ended == "time" and ended.worked_s < budget_s:
        what = f"ended by time after {ended.worked_s:.1f} s, its budget was {budget_s:g} s"
        tally.findings.append(Finding(trial.name, seq, what))
    limits = {"tokens": agent.tokens, "money": agent.money}
    if ended.ended in limits and limits[ended.ended] is None:
        tally.findings.append(Finding(trial.name, seq, f"ended by {ended.ended}, of which it had no budget"))
    if ended.prompts > 1 and not agent.reprompt:
        what = f"was told {ended.prompts} times what to do, and the recipe has nobody told to go on"
        tally.findings.append(Finding(trial.name, seq, what))
