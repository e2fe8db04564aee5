"""The review rubric as checks with evidence: what is not known never passes."""

from stepwell.ptb.review.finding import Evidence, Finding, Review, Standing, Verdict
from stepwell.ptb.review.reading import read_record
from stepwell.ptb.review.record import Audited, BrokenRecord, ReviewRecord
from stepwell.ptb.review.reviewing import review
from stepwell.ptb.review.setup_record import SetupRecord
from stepwell.ptb.review.trial_record import TrialRecord

__all__ = [
    "Audited",
    "BrokenRecord",
    "Evidence",
    "Finding",
    "Review",
    "ReviewRecord",
    "SetupRecord",
    "Standing",
    "TrialRecord",
    "Verdict",
    "read_record",
    "review",
]
