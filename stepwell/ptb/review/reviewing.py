"""All checks, and the verdict by the rubric's rules."""

from collections.abc import Sequence

from stepwell.ptb.review.checks.bias import bias
from stepwell.ptb.review.checks.consistency import coverage, keys
from stepwell.ptb.review.checks.contamination import contamination
from stepwell.ptb.review.checks.elicitation import elicitation
from stepwell.ptb.review.checks.quality import (
    completability,
    mixtures,
    resources,
    scaffolds,
    score_range,
    validity,
)
from stepwell.ptb.review.checks.reviewability import reviewability, worst
from stepwell.ptb.review.checks.sampled import audit, said_of
from stepwell.ptb.review.checks.scorers import known_answers, known_cases
from stepwell.ptb.review.checks.scores import columns, judges_of_answers, templates
from stepwell.ptb.review.checks.statistics import statistics
from stepwell.ptb.review.finding import Finding, Grade, Group, Review, Standing, Verdict
from stepwell.ptb.review.record import ReviewRecord
from stepwell.ptb.review.sample import draw
from stepwell.ptb.review.subject import subject_of


def review(record: ReviewRecord) -> Review:
    """Puts a record to the rubric. Pure: the same record gives the same review."""
    subject = subject_of(record)
    sample = draw(record, subject.trials)
    findings = [
        *reviewability(subject),
        known_cases(subject),
        known_answers(subject),
        audit(subject, sample),
        judges_of_answers(subject),
        templates(subject),
        columns(subject),
        keys(subject),
        coverage(subject),
        *elicitation(subject),
        *bias(subject),
        resources(subject),
        scaffolds(subject),
        contamination(subject),
        completability(subject),
        score_range(subject),
        statistics(subject),
        validity(subject),
        mixtures(subject),
    ]
    grade = worst([each.label for each in findings if each.group is Group.REVIEWABILITY])
    verdict, because = verdict_of(grade, findings)
    return Review(
        verdict=verdict,
        because=because,
        reviewability=grade,
        trials=len(subject.trials),
        keys=tuple(subject.bases),
        findings=tuple(findings),
        sample=said_of(sample),
    )


def verdict_of(grade: Grade, findings: Sequence[Finding]) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict, and what it follows from. What cannot be reviewed is not judged; one flag is a flaw, however much
    is unknown; and nothing is verified while a check that decides is unknown."""
    if grade == "Inadequate":
        of = [each for each in findings if each.label == "Inadequate" and each.group is Group.REVIEWABILITY]
        return Verdict.NEI, tuple(f"{each.id}: {each.title}: Inadequate" for each in of)
    deciding = [each for each in findings if each.group not in (Group.REVIEWABILITY, Group.QUALITY)]
    for standing, verdict in ((Standing.FLAGGED, Verdict.FLAWED), (Standing.UNKNOWN, Verdict.NEI)):
        of = [each for each in deciding if each.standing is standing]
        if of:
            return verdict, tuple(f"{each.id}: {each.title}: {each.standing}" for each in of)
    return Verdict.VERIFIED, (f"{len(deciding)} checks that decide passed, reviewability {grade}",)
