"""A certificate as a JSON document, and as lines for a person."""

from typing import Any

from stepwell.audit.finding import Finding, RuleResult
from stepwell.mlperf.certificate.certify import Certificate

SCHEMA = "stepwell/mlperf-certificate/1"
"""Names the form of the document."""
SHOWN = 3
"""Findings of a rule that are printed."""


def document(certificate: Certificate) -> dict[str, Any]:
    """The document: what was proven of which ledger, and what was not."""
    recipe, stop, first = certificate.recipe, certificate.stop, certificate.first
    return {
        "schema": SCHEMA,
        "run": certificate.run,
        "head": {"stream": f"run/{certificate.run}", "seq": certificate.head_seq, "hash": certificate.head},
        "granted": certificate.granted,
        "first": None if first is None else _finding(first),
        "samples_per_step": None if recipe is None else recipe.samples_per_step,
        "validation": None
        if recipe is None
        else {
            "schedule": recipe.validation.schedule,
            "mode": recipe.validation.mode,
            "first_version": recipe.schedule.first,
            "every": recipe.schedule.every,
            "initial": recipe.schedule.initial,
            "samples": recipe.validation.samples,
            "target": recipe.validation.target,
        },
        "stop": None if stop is None else {**stop._asdict(), "time_ms": stop.time_ms},
        "rules": [
            {
                "rule": result.rule,
                "holds": result.holds,
                "checked": result.checked,
                "unit": result.unit,
                "findings": [_finding(finding) for finding in result.findings],
            }
            for result in certificate.results
        ],
    }


def lines(certificate: Certificate) -> list[str]:
    """What is printed: a line a rule, under each that fails its first findings, then the outcome."""
    head = f"run {certificate.run}, head {certificate.head[:16]} at run/{certificate.run} #{certificate.head_seq}"
    said = [head, *_plan(certificate), ""]
    for result in certificate.results:
        said.append(f"{'failed' if result.findings else 'ok':<7} {result.rule:<13} {_count(result)}")
        said += [f"        {finding}" for finding in result.findings[:SHOWN]]
        if len(result.findings) > SHOWN:
            said.append(f"        and {len(result.findings) - SHOWN:,} more; --json names all")
    return [*said, "", *_outcome(certificate)]


def _plan(certificate: Certificate) -> list[str]:
    recipe = certificate.recipe
    if recipe is None:
        return []
    schedule, rule = (
        recipe.schedule,
        "the benchmark's" if recipe.validation.schedule == "mlperf" else "the recipe's own",
    )
    return [
        f"evaluations by {rule} schedule, {recipe.validation.mode}: from version {schedule.first}, every "
        f"{schedule.every}; {recipe.samples_per_step} samples a step"
    ]


def _outcome(certificate: Certificate) -> list[str]:
    first, stop = certificate.first, certificate.stop
    if first is not None:
        return ["not granted: the run can't prove that it is complete. Look first at", f"  {first}"]
    if stop is None:
        return ["granted: complete; no version passed the target"]
    return [f"granted: complete; version {stop.version} passed, stopped at {stop.time} ({stop.stream} #{stop.seq})"]


def _count(result: RuleResult) -> str:
    failed = f", {len(result.findings):,} do not hold" if result.findings else ""
    return f"{result.checked:,} {result.unit}{failed}"


def _finding(finding: Finding) -> dict[str, Any]:
    return {"stream": finding.stream, "seq": finding.seq, "what": finding.what}
