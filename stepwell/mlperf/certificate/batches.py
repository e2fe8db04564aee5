"""The batches of a run, as they were admitted."""

from typing import NamedTuple

from pydantic import ValidationError

from stepwell.audit.record import RunRecord
from stepwell.events import StepAdmitted
from stepwell.rl.batching import BatchManifest


class AdmittedBatch(NamedTuple):
    """A step's batch."""

    seq: int
    """Place of its `StepAdmitted` in `run/<run>`."""
    admitted: StepAdmitted
    """What fixed it."""
    manifest: BatchManifest
    """Who is in it."""


def admitted_batches(record: RunRecord) -> list[AdmittedBatch]:
    """Every batch whose manifest can be read, in order; of others the rules `blobs` and `batches` tell."""
    found: list[AdmittedBatch] = []
    for seq, admitted in record.run_events.every(StepAdmitted):
        blob = record.documents.get(admitted.manifest)
        try:
            manifest = None if blob is None else BatchManifest.model_validate_json(blob)
        except ValidationError:
            manifest = None
        if manifest is not None:
            found.append(AdmittedBatch(seq, admitted, manifest))
    return found
