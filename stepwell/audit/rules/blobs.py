"""Every blob that an event names is there, and is what its name says."""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord

HOLDS = "each blob that an event names is present, and its bytes hash to its name"
UNIT = "blobs"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule; the bytes were hashed when they were read."""
    tally.checked += len(record.named_blobs)
    for digest, naming in record.named_blobs.items():
        if digest in record.blob_faults:
            tally.findings.append(Finding(naming.stream, naming.seq, record.blob_faults[digest]))
