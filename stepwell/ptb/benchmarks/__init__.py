"""The benchmarks: where their rows come from, what is asked, and what answers are held against."""

from stepwell.ptb.benchmarks.declared import BENCHMARKS, Benchmark, benchmark
from stepwell.ptb.benchmarks.rows import BrokenRows

__all__ = ["BENCHMARKS", "Benchmark", "BrokenRows", "benchmark"]
