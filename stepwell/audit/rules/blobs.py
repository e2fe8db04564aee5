"""Every blob that an event names, or a task that it names, is there, and is what its name says."""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord

HOLDS = "each blob that an event names, and the secrets of each task, are present, and their bytes hash to their names"
UNIT = "blobs"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule; the bytes were hashed when they were read."""
    tally.checked += len(record.named_blobs)
    for digest, naming in record.named_blobs.items():
        if digest in record.blob_faults:
            tally.findings.append(Finding(naming.stream, naming.seq, record.blob_faults[digest]))
