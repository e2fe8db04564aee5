"""MLPerf Training's LLM post-training benchmark: its log derived from a ledger, checked officially, and packed.

MLCommons' own package `mlperf-logging` writes and checks the lines (`stepwell[mlperf]`). It was read at version 4.1.68,
ruleset 6.1.0, benchmark `qwen35_397b_grpo`.
"""

BENCHMARK = "qwen35_397b_grpo"
"""The benchmark, as the rules name it."""
RULESET = "6.1.0"
"""The rules that logs are written and checked by."""
