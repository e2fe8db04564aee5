"""What an audit found when the page was written, or that there was none: the page claims nothing that was not run."""

from dataclasses import dataclass
from html import escape
from typing import Any

from stepwell.audit.verification import Verification
from stepwell.report.tables import listing, moment

_FINDINGS = 5
"""Findings of a rule that the page names."""


@dataclass(frozen=True)
class Verified:
    """An audit, and what it was of."""

    verification: Verification
    """What it said."""
    head_seq: int
    """Last event of the run's own stream that it read."""
    head_hash: str
    """Hash of that event: it commits to all that was verified."""
    at_s: float
    """When it began, in seconds since the epoch."""
    took_s: float
    """Wall clock, reading included."""

    def words(self) -> str:
        """`verified: all 18 rules hold over 76,012 events in 11,000 streams, 4.2 s`."""
        results = self.verification.results
        failed = [result.rule for result in results if result.findings]
        said = (
            f"{len(failed)} of {len(results)} rules FAIL ({', '.join(failed)})"
            if failed
            else f"all {len(results)} rules hold"
        )
        over = f"{self.verification.events:,} events in {self.verification.streams:,} streams"
        return f"{said} over {over}, {self.took_s:.1f} s"

    def as_json(self) -> dict[str, Any]:
        """For programs: the outcome in short; `stepwell audit verify --json` tells all."""
        return {
            "holds": self.verification.holds,
            "failed": [result.rule for result in self.verification.results if result.findings],
            "rules": len(self.verification.results),
            "events": self.verification.events,
            "head": {"seq": self.head_seq, "hash": self.head_hash},
            "at_s": self.at_s,
            "took_s": self.took_s,
        }


def verified_section(run: str, head_seq: int, head_hash: str, verified: Verified | None) -> str:
    """How the page's figures were verified.

    Args:
        run: Name of the run.
        head_seq: Last event of the run's own stream that the page is made of; -1 before the first.
        head_hash: Its hash.
        verified: The audit, if one was made when the page was written.
    """
    head = (
        f"<p>Head of <span class='mono'>run/{escape(run)}</span> #{head_seq}: <span class='mono'>{head_hash}</span></p>"
    )
    if verified is None:
        name = escape(run)
        return (
            f"{head}<p class='outcome'>Not verified when this page was written.</p>"
            f"<p><code>stepwell audit verify {name}</code> checks all that the head commits to; "
            f"<code>stepwell report {name} --verify</code> does so and writes this page with the outcome.</p>"
        )
    rules = [
        [result.rule, result.holds, f"{result.checked:,} {result.unit}", "FAILS" if result.findings else "holds"]
        for result in verified.verification.results
    ]
    kind = "good" if verified.verification.holds else "bad"
    words = verified.words()
    return (
        f"{head}{_other_head(head_seq, head_hash, verified)}"
        f"<p class='outcome {kind}'>{escape(words[0].upper() + words[1:])}.</p>"
        f"<p>Begun {moment(verified.at_s)} UTC by <code>stepwell report</code>, with the rules of <code>stepwell audit "
        "verify</code>: each event was hashed again from its stored bytes, and each blob that an event names. That no "
        "other ledger was put in the place of this one is shown only by a head that was kept elsewhere.</p>"
        f"{_findings(verified)}<details><summary>The rules</summary>"
        f"{listing('', ['rule', 'what it holds', 'checked', 'outcome'], rules)}</details>"
    )


def verified_line(verified: Verified | None) -> str:
    """For the page's head."""
    if verified is None:
        return '<a href="#verified">not verified</a>'
    kind, words = ("good", "verified") if verified.verification.holds else ("bad", "does not verify")
    return f'<a class="outcome {kind}" href="#verified">{words}</a>'


def _other_head(head_seq: int, head_hash: str, verified: Verified) -> str:
    if (head_seq, head_hash) == (verified.head_seq, verified.head_hash):
        return ""
    return (
        f"<p class='outcome'>The audit read the run up to #{verified.head_seq}: "
        f"<span class='mono'>{verified.head_hash}</span>.</p>"
    )


def _findings(verified: Verified) -> str:
    parts: list[str] = []
    for result in verified.verification.results:
        shown = "".join(f"<li>{escape(str(finding))}</li>" for finding in result.findings[:_FINDINGS])
        more = len(result.findings) - _FINDINGS
        if shown:
            rest = f"<p>{more:,} more; <code>stepwell audit verify --json</code> names all.</p>" if more > 0 else ""
            parts.append(
                f"<p class='outcome bad'>{escape(result.rule)}: {escape(result.holds)}</p><ul>{shown}</ul>{rest}"
            )
    return "".join(parts)
