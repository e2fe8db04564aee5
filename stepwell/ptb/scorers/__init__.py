"""What an answer is worth: right, wrong, or not scored."""

from stepwell.ptb.scorers.score import BenchmarkScore, Means, Scored, collect, score_answers

__all__ = ["BenchmarkScore", "Means", "Scored", "collect", "score_answers"]
