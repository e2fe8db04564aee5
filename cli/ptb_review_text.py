"""A review as text for a terminal."""

import shutil
import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from stepwell.ptb.review import Evidence, Finding, Review, Standing, Verdict

WIDTH = 110
"""Columns of text that is not printed to a terminal."""
LEAST_WIDTH = 60
SHOWN = 4
"""Pieces of evidence of a check that are told, and places of each; `--all` tells all."""
_COLOURS = {
    Standing.PASS: "green",
    Standing.FLAGGED: "red",
    Standing.UNKNOWN: "yellow",
    Standing.REPORTED: "cyan",
}
_INDENT = " " * 6


def print_review(review: Review, *, everything: bool, console: Console | None = None) -> None:
    """Prints a review.

    Args:
        review: The review.
        everything: Whether to tell all evidence, and every place that it is said of.
        console: Where to; standard output if none is given.
    """
    width = max(LEAST_WIDTH, shutil.get_terminal_size((WIDTH, 40)).columns)
    out = console or Console(highlight=False, soft_wrap=True, width=width)
    colour = {Verdict.VERIFIED: "green", Verdict.FLAWED: "red", Verdict.NEI: "yellow"}[review.verdict]
    out.print(Text.assemble((review.verdict, f"bold {colour}"), f"  {_scope(review)}"))
    for reason in review.because:
        out.print(Text(f"  {reason}"))
    group = None
    for finding in review.findings:
        if finding.group is not group:
            group = finding.group
            out.print(Text(f"\n{group.capitalize()}", style="bold"))
        colour = _COLOURS[finding.standing]
        out.print(Text.assemble(f"{finding.id:<4}", (finding.label, colour), f"  {finding.title}", _share(finding)))
        for line in _lines(finding, review.trials, everything, width):
            out.print(Text(line))


def _scope(review: Review) -> str:
    keys = ", ".join(key[:12] for key in review.keys)
    return f"{review.trials} trials, comparability key {keys}; reviewability {review.reviewability}"


def _share(finding: Finding) -> str:
    return "" if not finding.share else f"  ({finding.share:.1%} of the score)"


def _lines(finding: Finding, trials: int, everything: bool, width: int) -> Iterator[str]:
    yield from _wrapped(f"looked at {finding.looked_at}", width)
    evidence = finding.evidence if everything else finding.evidence[:SHOWN]
    for each in evidence:
        yield from _wrapped(f"- {_said(each, trials, everything)}", width)
    if len(finding.evidence) > len(evidence):
        yield f"{_INDENT}- and {len(finding.evidence) - len(evidence)} more: --all tells them"
    yield from _wrapped(f"would change it: {finding.would_change}", width)


def _said(evidence: Evidence, trials: int, everything: bool) -> str:
    if not evidence.where:
        return evidence.says
    if len(evidence.where) == trials and trials > 1 and not everything:
        return f"{evidence.says} (all {trials} trials)"
    named = evidence.where if everything else evidence.where[:SHOWN]
    more = len(evidence.where) - len(named)
    return f"{evidence.says} ({', '.join(named)}{f' and {more} more' if more else ''})"


def _wrapped(text: str, width: int) -> list[str]:
    after = _INDENT + "  "
    return textwrap.wrap(
        text, width, initial_indent=_INDENT, subsequent_indent=after, break_long_words=False, break_on_hyphens=False
    )
