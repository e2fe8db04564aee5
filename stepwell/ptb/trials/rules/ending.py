"""A run set that is finished has a record of each trial, and commits to how each stream ended."""

from stepwell.audit.finding import Tally
from stepwell.audit.rules.commitments import check_commitment
from stepwell.events import RunSetFinished
from stepwell.events.streams import trial_stream
from stepwell.ptb.trials.audited import RunSetRecord

HOLDS = "a finished run set has a record of each of its trials, and equals the heads and facts of their streams"
UNIT = "commitments"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to the run set's last event."""
    stream = record.stored.streams.get(record.own)
    if stream is None or record.created is None:
        return  # the rule `cells` says so
    scored = {trial.cell for trial in record.trials if trial.scored is not None}
    for seq, finished in stream.every(RunSetFinished):
        for cell in record.created.cells:
            tally.expect(cell in scored, record.own, seq, f"finished, and {cell} has no record")
        what = f"finished with {finished.scored} trials, there are {len(record.created.cells)}"
        tally.expect(finished.scored == len(record.created.cells), record.own, seq, what)
        expected = [trial_stream(record.name, cell) for cell in record.created.cells]
        check_commitment(record.stored, finished.heads, finished.heads.facts, expected, record.own, seq, tally)
