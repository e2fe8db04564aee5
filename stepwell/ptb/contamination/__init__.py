"""Contamination: rows of a benchmark in what an agent trained on, by words, numbers apart, and by meaning."""

from stepwell.ptb.contamination.check import Check, check_folder
from stepwell.ptb.contamination.items import Benchmark, UnreadableBenchmark, benchmark_of, load_benchmark
from stepwell.ptb.contamination.report import ALLOWED_LEAKS, Leak, Report, Verdict

__all__ = [
    "ALLOWED_LEAKS",
    "Benchmark",
    "Check",
    "Leak",
    "Report",
    "UnreadableBenchmark",
    "Verdict",
    "benchmark_of",
    "check_folder",
    "load_benchmark",
]
