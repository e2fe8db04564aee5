"""What was signed is what stands: each signed head verifies with the run's key, and is a head that its stream had.

A run without signed heads breaks nothing: it began before there were any, or its key was elsewhere. Nor does a chain
that was made anew from its first event on, with a key of its own: only the key and a head that were kept elsewhere
(`stepwell audit anchor`) tell.
"""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord
from stepwell.events import HeadSigned, KeyDeclared
from stepwell.events.head_signed import StreamHead
from stepwell.signing import head_message, is_signed

HOLDS = "each signed head verifies with the run's key, follows the one before, and equals the stream that it names"
UNIT = "signed heads"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each signed head of `seal/<run>`."""
    stream = record.seals
    key, before, reached = "", "", dict[str, int]()
    for seq, event in stream.events:
        if isinstance(event, KeyDeclared):
            key = event.public_key
        if not isinstance(event, HeadSigned):
            continue
        message = head_message(stream.name, event.at, event.heads, event.before)
        is_ours = is_signed(key, message, event.signature)
        tally.expect(is_ours, stream.name, seq, f"the signature of head {event.at} is not by the run's key {key}")
        if event.before != before:
            what = f"head {event.at} names {event.before or 'none'} as the signature before it, which is {before}"
            tally.findings.append(Finding(stream.name, seq, what))
        before = event.signature
        for head in event.heads:
            _compare(record, head, event.at, seq, reached, tally)


def _compare(record: RunRecord, head: StreamHead, at: str, seq: int, reached: dict[str, int], tally: Tally) -> None:
    named = record.streams.get(head.stream)
    hashes = named.hashes if named else ()
    found = hashes[head.seq] if head.seq < len(hashes) else "no such event"
    if found != head.head:
        what = f"signed at {at} as {head.head}, found {found}; what is signed stands in {record.seals.name} #{seq}"
        tally.findings.append(Finding(head.stream, head.seq, what))
    if head.seq < reached.get(head.stream, 0):
        what = f"head {at} signs {head.stream} #{head.seq}, after #{reached[head.stream]} was signed"
        tally.findings.append(Finding(record.seals.name, seq, what))
    reached[head.stream] = head.seq
