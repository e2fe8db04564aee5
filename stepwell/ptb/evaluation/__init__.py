"""Evaluates a submitted model: answers in a sandbox that knows the questions only, scores outside of it.

The types are here; what does it is `evaluate_submission` in the module `evaluation`, whose libraries take seconds to
import.
"""

from stepwell.ptb.evaluation.order import EngineSettings, EvaluationLimits, EvaluationOrder
from stepwell.ptb.evaluation.result import (
    Answer,
    EvaluationResult,
    FailedAttempt,
    ItemOutcome,
    PassResult,
    SubmissionFacts,
    UsedSampling,
)

__all__ = [
    "Answer",
    "EngineSettings",
    "EvaluationLimits",
    "EvaluationOrder",
    "EvaluationResult",
    "FailedAttempt",
    "ItemOutcome",
    "PassResult",
    "SubmissionFacts",
    "UsedSampling",
]
