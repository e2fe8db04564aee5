"""Of a trial in whose record a secret survived, nothing of that record is kept, and nothing is scored."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events import AgentEnded
from stepwell.ptb.trials.audited import RunSetRecord

HOLDS = "a record in which a secret survived is not kept, and names only secrets that the agent was given"
UNIT = "agents"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each agent that ended."""
    for trial in record.trials:
        for seq, ended in trial.stream.every(AgentEnded):
            kept = [name for name in ("trace", "events", "traffic") if getattr(ended, name)]
            what = f"{', '.join(kept)} are kept, in which {', '.join(ended.secrets)} survived"
            tally.expect(not (ended.secrets and kept), trial.name, seq, what)
            if not ended.secrets and not {"trace", "events"} <= set(kept):
                tally.findings.append(Finding(trial.name, seq, "no trace is kept, and no secret says why"))
            given = () if trial.agent is None else trial.agent.secrets
            for name in ended.secrets:
                if trial.agent is not None and name not in given:
                    tally.findings.append(Finding(trial.name, seq, f"{name} survived, which the agent was not given"))
