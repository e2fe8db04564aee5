"""How the rules of an audit are printed: a line a rule, under each that fails its first findings, then the outcome."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepwell.audit.finding import RuleResult

SHOWN = 5
"""Findings of a rule that are printed; `--json` gives all."""


def rule_lines(results: "Sequence[RuleResult]") -> list[str]:
    """A line a rule, and its first findings."""
    said: list[str] = []
    for result in results:
        said.append(f"{'failed' if result.findings else 'ok':<7} {result.rule:<13} {_count(result)}")
        said += [f"        {finding}" for finding in result.findings[:SHOWN]]
        if len(result.findings) > SHOWN:
            said.append(f"        and {len(result.findings) - SHOWN:,} more; --json names all")
    return said


def outcome_lines(results: "Sequence[RuleResult]") -> list[str]:
    """Whether all hold, or where to look first and what breaks there."""
    failed = [result for result in results if result.findings]
    if not failed:
        return ["every rule holds"]
    first = failed[0]
    return [
        f"{len(failed)} of {len(results)} rules fail. Look first at {first.findings[0].stream}:",
        f"it breaks `{first.rule}` ({first.holds})",
    ]


def _count(result: "RuleResult") -> str:
    failed = f", {len(result.findings):,} do not hold" if result.findings else ""
    return f"{result.checked:,} {result.unit}{failed}"
