"""The tables for reading are what the events make them: rebuilt beside them, and compared row by row.

Only what they had taken in is compared: they follow the ledger by some seconds, and a rebuild fills them anew.
"""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord

HOLDS = "each row of the tables for reading is what the events that they have taken in make it"
UNIT = "rows"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule; the rows were compared when they were read."""
    tally.checked += record.projected.rows
    tally.findings += [Finding(fault.stream, None, fault.what) for fault in record.projected.faults]
