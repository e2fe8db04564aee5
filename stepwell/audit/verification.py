"""Applies every rule to a run's record."""

from collections.abc import Sequence
from dataclasses import dataclass

from stepwell.audit.fate_ledger import FateLedger, fate_ledger
from stepwell.audit.finding import RuleResult
from stepwell.audit.record import RunRecord
from stepwell.audit.rule import RuleOf, applied
from stepwell.audit.rules import (
    ancestry,
    attestations,
    batches,
    blobs,
    budgets,
    chains,
    commitments,
    curriculum,
    ending,
    fates,
    gates,
    health,
    operators,
    projections,
    quarantine,
    replacements,
    rows,
    scores,
    seals,
    settings,
    skips,
    steps,
    validations,
    versions,
)
from stepwell.audit.signed import Anchor, Signed, check_anchors, signed
from stepwell.audit.taint import Taint, taint_of_record

Rule = RuleOf[RunRecord]
"""What a module under `rules/` has."""

RULES: tuple[Rule, ...] = (
    chains,
    ancestry,
    commitments,
    blobs,
    settings,
    curriculum,
    fates,
    replacements,
    skips,
    steps,
    versions,
    rows,
    attestations,
    scores,
    batches,
    validations,
    operators,
    gates,
    budgets,
    health,
    quarantine,
    ending,
    seals,
    projections,
)
"""A rule's name is its module's. What others build on comes first: the first finding is the one to look at."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What an audit says of a run."""

    run: str
    """Its name."""
    finished: str | None
    """How it ended; None for a run that is not finished: then what stands was verified."""
    streams: int
    """Streams that it has."""
    events: int
    """Events in them."""
    ledger: FateLedger
    """What became of its prompts."""
    taint: Taint
    """What somebody found not to be trusted, and what came of it; no rule fails for that."""
    signed: Signed
    """How far it is signed."""
    results: tuple[RuleResult, ...]
    """One a rule, and one for the anchors if there were any."""

    @property
    def holds(self) -> bool:
        """Whether every rule holds."""
        return not any(result.findings for result in self.results)


def verify(record: RunRecord, anchors: Sequence[Anchor] = ()) -> Verification:
    """Applies every rule, and compares with what was anchored elsewhere."""
    results = [applied(rule, record) for rule in RULES]
    if anchors:
        results.append(check_anchors(record, anchors))
    return Verification(
        run=record.run,
        finished=None if record.finished is None else record.finished.end.value,
        streams=len(record.streams),
        events=record.events,
        ledger=fate_ledger(record),
        taint=taint_of_record(record),
        signed=signed(record),
        results=tuple(results),
    )
