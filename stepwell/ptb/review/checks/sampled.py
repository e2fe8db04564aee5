"""S3: a sample of scored answers that people looked at."""

from stepwell.ptb.review.deciding import BAR, Case, decide, fine, noted, unknown, wrong
from stepwell.ptb.review.finding import Finding, SampleSaid
from stepwell.ptb.review.sample import FIRST, OPEN, WIDENED, Sample
from stepwell.ptb.review.subject import Subject


def audit(subject: Subject, sample: Sample) -> Finding:
    """S3. The finding's share is the share of errors, not that of the trials that they were found in."""
    found = sample.error_share(sample.wanted)
    cases: list[Case] = [
        unknown(each.cell.trial, each.weight, "its answers with their scores")
        for each in subject.trials
        if each.cell.raw is not None and not each.record.items
    ]
    cases += [
        noted(unit.trial.cell.trial, f"wrong: {unit.outcome.item} scored {unit.outcome.worth}: {said.reason}")
        for unit in sample.units
        if (said := sample.audited.get(unit.id)) is not None and said.score_is_right is False
    ]
    if sample.missing:
        cases.append(unknown("the sample", 1.0, f"whether {len(sample.missing)} of its scores are right"))
    if found is None:
        cases.append(unknown("the sample", 1.0, "the share of errors"))
    elif found >= BAR:
        cases.append(wrong("the sample", found, f"errors come to {found:.1%} of the score"))
    else:
        cases.append(fine("the sample", found, f"errors come to {found:.1%} of the score"))
    if sample.wanted > FIRST:
        low, high = OPEN
        cases.append(noted("the sample", f"widened: the first {FIRST} came to {low:.0%} to {high:.0%}"))
    looked_at = (
        f"{sample.wanted - len(sample.missing)} of {sample.wanted} scored answers, drawn from {sample.population} "
        f"by benchmark and base model in proportion to the score (up to {WIDENED})"
    )
    finding = decide("S3", looked_at, cases)
    return finding.model_copy(update={"share": found})


def said_of(sample: Sample) -> SampleSaid:
    """How far the audit has come."""
    return SampleSaid(
        population=sample.population,
        wanted=sample.wanted,
        audited=sample.wanted - len(sample.missing),
        error_share=sample.error_share(sample.wanted),
        missing=tuple(each.id for each in sample.missing),
    )
