"""Applies every rule to a run set's record."""

from dataclasses import dataclass

from stepwell.audit.finding import RuleResult
from stepwell.audit.record import RunRecord
from stepwell.audit.rule import RuleOf, applied
from stepwell.audit.rules import blobs, chains
from stepwell.ptb.trials.audited import RunSetRecord
from stepwell.ptb.trials.rules import (
    budgets,
    cells,
    checks,
    documents,
    ending,
    evaluations,
    files,
    judgements,
    overrides,
    passes,
    phases,
    points,
    prompts,
    scores,
    secrets,
    starts,
    submissions,
)

SHARED: tuple[RuleOf[RunRecord], ...] = (chains, blobs)
"""Rules that hold of any ledger."""
RULES: tuple[RuleOf[RunSetRecord], ...] = (
    cells,
    documents,
    phases,
    starts,
    files,
    prompts,
    budgets,
    secrets,
    submissions,
    checks,
    judgements,
    passes,
    points,
    evaluations,
    scores,
    overrides,
    ending,
)
"""A rule's name is its module's. What others build on comes first: the first finding is the one to look at."""


@dataclass(frozen=True, slots=True)
class RunSetVerification:
    """What an audit says of a run set."""

    run_set: str
    """Its name."""
    finished: bool
    """Whether all its trials have their record; else what stands was verified."""
    trials: int
    """Those that have begun."""
    scored: int
    """Those that have their record."""
    streams: int
    """Streams that it has."""
    events: int
    """Events in them."""
    head: str
    """Hash of the last event of its own stream: of a finished run set it commits to every event of its trials."""
    regime_known: bool
    """Whether the regime was there that it began with: without it passes are held against its basis."""
    results: tuple[RuleResult, ...]
    """One a rule."""

    @property
    def holds(self) -> bool:
        """Whether every rule holds."""
        return not any(result.findings for result in self.results)


def verify_run_set(record: RunSetRecord) -> RunSetVerification:
    """Applies every rule."""
    own = record.stored.streams.get(record.own)
    results = [*(applied(rule, record.stored) for rule in SHARED), *(applied(rule, record) for rule in RULES)]
    return RunSetVerification(
        run_set=record.name,
        finished=record.finished is not None,
        trials=len(record.trials),
        scored=sum(trial.scored is not None for trial in record.trials),
        streams=len(record.stored.streams),
        events=record.stored.events,
        head="" if own is None else own.child.head,
        regime_known=record.regime is not None,
        results=tuple(results),
    )
