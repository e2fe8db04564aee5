"""Applies every rule to a run's record."""

from dataclasses import dataclass
from typing import Protocol

from stepwell.audit.fate_ledger import FateLedger, fate_ledger
from stepwell.audit.finding import RuleResult, Tally
from stepwell.audit.record import RunRecord
from stepwell.audit.rules import (
    attestations,
    batches,
    blobs,
    chains,
    commitments,
    curriculum,
    ending,
    fates,
    gates,
    health,
    replacements,
    rows,
    scores,
    settings,
    skips,
    steps,
    validations,
    versions,
)


class Rule(Protocol):
    """What a module under `rules/` has."""

    __name__: str

    @property
    def HOLDS(self) -> str:
        """What it holds, in words."""
        ...

    @property
    def UNIT(self) -> str:
        """What it counts."""
        ...

    @staticmethod
    def check(record: RunRecord, tally: Tally) -> None:
        """Applies the rule."""
        ...


RULES: tuple[Rule, ...] = (
    chains,
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
    gates,
    health,
    ending,
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
    results: tuple[RuleResult, ...]
    """One a rule."""

    @property
    def holds(self) -> bool:
        """Whether every rule holds."""
        return not any(result.findings for result in self.results)


def verify(record: RunRecord) -> Verification:
    """Applies every rule."""
    return Verification(
        run=record.run,
        finished=None if record.finished is None else record.finished.end.value,
        streams=len(record.streams),
        events=record.events,
        ledger=fate_ledger(record),
        results=tuple(_apply(rule, record) for rule in RULES),
    )


def _apply(rule: Rule, record: RunRecord) -> RuleResult:
    tally = Tally()
    rule.check(record, tally)
    return RuleResult(
        rule=rule.__name__.rpartition(".")[2],
        holds=rule.HOLDS,
        checked=tally.checked,
        unit=rule.UNIT,
        findings=tuple(tally.findings),
    )
