"""Every blob that an event names, or a task that it names, is there, and is what its name says; one that is gone was
deleted, with a reason."""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord

HOLDS = (
    "each blob that an event names, and the secrets of each task, are present, and their bytes hash to their names, or "
    "their deletion is recorded"
)
UNIT = "blobs"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule; the bytes were hashed when they were read."""
    tally.checked += len(record.named_blobs)
    for digest, naming in record.named_blobs.items():
        is_deleted = digest in record.missing_blobs and record.deletion(digest) is not None
        if digest in record.blob_faults and not is_deleted:
            tally.findings.append(Finding(naming.stream, naming.seq, record.blob_faults[digest]))
