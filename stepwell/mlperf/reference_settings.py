"""What the benchmark's rules derive from the batch size (MLPerf Training v6.1, `qwen35_397b_grpo`, closed division).

The formulas are those that `mlperf_logging.compliance_checker` 4.1.68 tests logs with
(`training_6.1.0/closed_qwen35_397b_grpo.yaml`).
"""

import math

BATCH = 256
"""Batch size, in rollouts, at which the other formulas are anchored."""


def base_learning_rate(batch: int) -> float:
    """Learning rate for a batch of so many rollouts: 1e-6 · sqrt(batch / 256)."""
    return 1e-6 * math.sqrt(batch / BATCH)


def gradient_clip_norm(batch: int) -> float:
    """Norm that gradients are clipped to: 0.125 · sqrt(256 / batch)."""
    return 0.125 * math.sqrt(BATCH / batch)


def first_evaluated_version(batch: int) -> int:
    """Steps before the first evaluation: ceil(2.5 + 3840 / batch); from then on every step is evaluated."""
    return math.ceil(2.5 + 3840 / batch)
