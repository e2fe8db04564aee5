"""An agent is started once at each start of its trial, and a trial starts again only within its budget."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events import (
    AgentEnded,
    AgentRestarted,
    AgentStarted,
    AttemptOpened,
    CheckReached,
    EnvironmentTested,
    JudgementReached,
    SubmissionTaken,
    TrialAbandoned,
)
from stepwell.ptb.trials.audited import AuditedTrial, RunSetRecord

HOLDS = "one agent a start, where it was tested; starts again are numbered, say why, and are no more than allowed"
UNIT = "starts and attempts"

_OF_A_START = (EnvironmentTested, AgentStarted, AgentEnded, SubmissionTaken, CheckReached, JudgementReached)


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each trial."""
    most = None if record.recipe is None else record.recipe.failures.host_restarts
    for trial in record.trials:
        _check_trial(trial, most, tally)


def _check_trial(trial: AuditedTrial, most: int | None, tally: Tally) -> None:
    epoch, since, abandoned = 0, 0, 0
    tested: EnvironmentTested | None = None
    started = False
    for seq, event in trial.stream.events:
        if isinstance(event, _OF_A_START) and event.epoch != epoch:
            what = f"{event.type} is of start {event.epoch}, the trial is in start {epoch}"
            tally.findings.append(Finding(trial.name, seq, what))
        match event:
            case AgentRestarted():
                epoch, since, tested, started = epoch + 1, since + 1, None, False
                tally.expect(event.epoch == epoch, trial.name, seq, f"start {event.epoch}, wanted start {epoch}")
                if most is not None and since > most:
                    tally.findings.append(Finding(trial.name, seq, f"starts again {since} times, {most} are allowed"))
                if not event.cause.strip():
                    tally.findings.append(Finding(trial.name, seq, "starts again, and does not say why"))
            case TrialAbandoned():
                number = abandoned
                abandoned, since = abandoned + 1, 0
                what = f"given up for the {event.number + 1}. time, it is the {number + 1}."
                tally.expect(event.number == number, trial.name, seq, what)
            case EnvironmentTested():
                tested = event
            case AgentStarted():
                tally.expect(not started, trial.name, seq, f"a second agent in start {epoch}")
                started = True
                if tested is not None and tested.host != event.host:
                    what = f"the agent started on {event.host}, tested was {tested.host}"
                    tally.findings.append(Finding(trial.name, seq, what))
            case AttemptOpened():
                what = f"an attempt that found {event.resumed_at} events, there were {seq}"
                tally.expect(event.resumed_at == seq, trial.name, seq, what)
            case _:
                pass
