"""Grants the completeness certificate of a run, or says why not.

A certificate rests on rules of the audit, which hold what every run must show, and on the rules under `rules`, which
hold what a benchmark asks for besides. All are pure functions of the record.
"""

from collections.abc import Callable
from dataclasses import dataclass

from stepwell.audit.finding import Finding, RuleResult, Tally
from stepwell.audit.record import RunRecord
from stepwell.audit.rules import (
    attestations,
    batches,
    blobs,
    chains,
    commitments,
    curriculum,
    fates,
    rows,
    scores,
    seals,
    settings,
    steps,
    validations,
    versions,
)
from stepwell.audit.rules import ending as audited_ending
from stepwell.audit.verification import Rule
from stepwell.mlperf.certificate.recipe import CertifiedRecipe, recipe_of
from stepwell.mlperf.certificate.rules import ends, evaluations, log, samples, stop, trained, whole
from stepwell.mlperf.certificate.rules.log import GivenLog
from stepwell.mlperf.certificate.stopping import Stop, stop_of

AUDITED: tuple[Rule, ...] = (
    chains,
    commitments,
    blobs,
    settings,
    curriculum,
    fates,
    steps,
    versions,
    rows,
    attestations,
    scores,
    batches,
    validations,
    audited_ending,
    seals,
)
"""Rules of the audit that a certificate rests on."""
OWN: tuple[Rule, ...] = (whole, samples, ends, trained, evaluations, stop)
"""Rules that only a certificate has."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What can be proven of a run."""

    run: str
    """Its name."""
    head: str
    """Hash of the last event of `run/<run>`, which commits to all that is below it."""
    head_seq: int
    """Place of that event."""
    recipe: CertifiedRecipe | None
    """What it was to do; None where that cannot be read."""
    stop: Stop | None
    """When it counts as stopped; None if no version passed."""
    results: tuple[RuleResult, ...]
    """One a rule: first those of the audit."""

    @property
    def granted(self) -> bool:
        """Whether every rule holds."""
        return not any(result.findings for result in self.results)

    @property
    def first(self) -> Finding | None:
        """The event to look at first; None where all is proven."""
        return next((result.findings[0] for result in self.results if result.findings), None)


def certify(record: RunRecord, given: GivenLog | None = None) -> Certificate:
    """The certificate of a run.

    Args:
        record: All that an audit reads of it.
        given: A log that must be what the ledger gives.
    """
    recipe = recipe_of(record)
    results = [_apply(rule.__name__, rule.HOLDS, rule.UNIT, record, rule.check) for rule in (*AUDITED, *OWN)]
    if given is not None:
        results.append(
            _apply(log.__name__, log.HOLDS, log.UNIT, record, lambda found, tally: log.check(found, given, tally))
        )
    return Certificate(
        run=record.run,
        head=record.run_events.child.head,
        head_seq=record.run_events.child.seq,
        recipe=recipe,
        stop=None if recipe is None else stop_of(record, recipe),
        results=tuple(results),
    )


def _apply(
    module: str, holds: str, unit: str, record: RunRecord, check: Callable[[RunRecord, Tally], None]
) -> RuleResult:
    tally = Tally()
    check(record, tally)
    return RuleResult(module.rpartition(".")[2], holds, tally.checked, unit, tuple(tally.findings))
