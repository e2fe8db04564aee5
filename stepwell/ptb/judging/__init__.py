"""Models that judge answers: any behind an OpenAI-compatible address, or judgements that were recorded."""

from stepwell.ptb.judging.judge import Judge, JudgeFailed, Question, ask_readably
from stepwell.ptb.judging.openai_judge import OpenAIJudge
from stepwell.ptb.judging.recorded import BrokenRecord, RecordedJudge, RecordingJudge

__all__ = [
    "BrokenRecord",
    "Judge",
    "JudgeFailed",
    "OpenAIJudge",
    "Question",
    "RecordedJudge",
    "RecordingJudge",
    "ask_readably",
]
