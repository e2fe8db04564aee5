"""How far a run is signed, and anchors: heads that were kept elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from stepwell.audit.finding import Finding, RuleResult, Tally
from stepwell.audit.record import RunRecord
from stepwell.events import HeadSigned, KeyDeclared
from stepwell.events.streams import run_stream, seal_stream

FORM = "stepwell-anchor-1"
"""First word of an anchor's line."""


@dataclass(frozen=True, slots=True)
class Signed:
    """The signatures of a run."""

    public_key: str
    """The run's key, in hex; empty for a run that is not signed."""
    heads: int
    """Signed heads."""
    last: str
    """What the last of them was signed at: a step, or `finished`; empty for none."""

    def words(self) -> str:
        """For people."""
        if not self.public_key:
            return "not signed: the run has no key"
        upto = f"up to {self.last if self.last == 'finished' else f'step {self.last}'}" if self.heads else "no head yet"
        return f"signed by ed25519 key {self.public_key}: {self.heads:,} heads, {upto}"


def signed(record: RunRecord) -> Signed:
    """How far a run is signed; whether its signatures hold, the rule `seals` says."""
    declared, heads = record.seals.first(KeyDeclared), record.seals.every(HeadSigned)
    return Signed(declared[1].public_key if declared else "", len(heads), heads[-1][1].at if heads else "")


class NoAnchor(ValueError):
    """A line that is no anchor."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The key of a run and the head of one of its streams, as they were once: to be kept where whoever has the ledger
    cannot write."""

    public_key: str
    """In hex; empty for a run that was not signed."""
    stream: str
    """`seal/<run>`; of a run that was not signed `run/<run>`."""
    seq: int
    """Place of the head."""
    head: str
    """Its hash."""

    def line(self) -> str:
        """One line of text."""
        return f"{FORM} {self.public_key or '-'} {self.stream} {self.seq} {self.head}"

    @classmethod
    def parse(cls, line: str) -> Self:
        """The anchor of a line.

        Raises:
            NoAnchor: it is none.
        """
        words = line.split()
        if len(words) != 5 or words[0] != FORM or not words[3].isdecimal():
            raise ValueError(
                f"{line!r} is no anchor: wanted `{FORM} KEY STREAM SEQ HASH`, as of `stepwell audit anchor`"
            )
        return cls("" if words[1] == "-" else words[1], words[2], int(words[3]), words[4])


def check_anchors(record: RunRecord, anchors: Iterable[Anchor]) -> RuleResult:
    """Whether what was kept elsewhere still stands; a result like a rule's."""
    tally = Tally()
    key = signed(record).public_key
    for anchor in anchors:
        known = record.streams.get(anchor.stream)
        hashes = known.hashes if known else ()
        found = hashes[anchor.seq] if anchor.seq < len(hashes) else "no such event"
        tally.expect(found == anchor.head, anchor.stream, anchor.seq, f"anchored as {anchor.head}, found {found}")
        if anchor.public_key not in ("", key):
            what = f"anchored with the key {anchor.public_key}, the ledger says {key or 'none'}"
            tally.findings.append(Finding(seal_stream(record.run), 0, what))
        if anchor.stream not in (seal_stream(record.run), run_stream(record.run)):
            tally.findings.append(Finding(anchor.stream, anchor.seq, f"an anchor of another run than {record.run}"))
    holds = "what was anchored elsewhere stands, with the key that it was anchored with"
    return RuleResult("anchors", holds, tally.checked, "anchors", tuple(tally.findings))
