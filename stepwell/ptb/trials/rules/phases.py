"""A trial goes through its phases in order, and skips none."""

from collections.abc import Mapping

from stepwell.audit.finding import Tally
from stepwell.events import (
    AgentEnded,
    AgentRestarted,
    AgentStarted,
    CheckReached,
    EnvironmentTested,
    JudgementReached,
    PassScored,
    SubmissionEvaluated,
    SubmissionTaken,
    TrialCreated,
    TrialPrepared,
    TrialScored,
)
from stepwell.events.base import Event
from stepwell.ptb.trials.audited import AuditedTrial, RunSetRecord

HOLDS = "each trial's events follow its phases, from their start again where its host was lost"
UNIT = "events"

ORDER: tuple[type[Event], ...] = (
    TrialCreated,
    TrialPrepared,
    EnvironmentTested,
    AgentStarted,
    AgentEnded,
    SubmissionTaken,
    CheckReached,
    JudgementReached,
    PassScored,
    SubmissionEvaluated,
    TrialScored,
)
"""Of an agent's trial."""
REFERENCE = (TrialCreated, PassScored, SubmissionEvaluated, TrialScored)
"""Of a reference's."""
MANY = (CheckReached, JudgementReached, PassScored)
"""Of which there are several, or none: how many, other rules say."""
_RANKS: Mapping[type[Event], int] = {kind: rank for rank, kind in enumerate(ORDER)}


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each trial."""
    for trial in record.trials:
        _check_trial(trial, tally)


def _check_trial(trial: AuditedTrial, tally: Tally) -> None:
    order = ORDER if trial.created.role == "agent" else REFERENCE
    last: Event = trial.created
    prepared: Event = trial.created
    failed = False
    """Whether there is nothing to evaluate."""
    for seq, event in trial.stream.events[1:]:
        if isinstance(event, AgentRestarted):
            is_early = _RANKS[type(last)] < _RANKS[PassScored] and order is ORDER
            tally.expect(is_early, trial.name, seq, f"starts again after {last.type}")
            last, failed = prepared, False
        if type(event) not in _RANKS:
            continue
        failed |= isinstance(event, SubmissionTaken) and bool(event.failure)
        failed |= isinstance(event, AgentEnded) and bool(event.secrets)
        why = _why_not(order, last, event, failed=failed)
        tally.expect(not why, trial.name, seq, why)
        if isinstance(event, TrialPrepared):
            prepared = event
        if _RANKS[type(event)] > _RANKS[type(last)]:
            last = event


def _why_not(order: tuple[type[Event], ...], last: Event, event: Event, *, failed: bool) -> str:
    """Why an event cannot follow another; empty if it can."""
    if type(event) not in order:
        return f"{event.type} in the trial of a reference"
    if failed and isinstance(event, PassScored | SubmissionEvaluated):
        return f"{event.type}, although there is no model that may be evaluated"
    at, before = order.index(type(event)), order.index(type(last)) if type(last) in order else 0
    if at < before or (at == before and type(event) not in MANY):
        return f"{event.type} after {last.type}"
    skipped = [kind for kind in order[before + 1 : at] if kind not in MANY]
    if failed:
        skipped = [kind for kind in skipped if kind is not SubmissionEvaluated]
    return f"{event.type} after {last.type}, without {skipped[0].__name__}" if skipped else ""
