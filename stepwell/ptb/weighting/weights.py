"""The published rule: a benchmark counts by how little its score rises from base to instruct models.

`w_b = (1 / (mean instruct − mean base)) / Σ`, and a run-set's score is `Σ_b w_b · mean over base models (score)`.
"""

import math
from collections.abc import Mapping
from statistics import fmean

Scores = Mapping[str, Mapping[str, float]]
"""Points, 0 to 100, by model and benchmark."""


def weights_of(base: Scores, instruct: Scores, benchmarks: tuple[str, ...]) -> dict[str, float]:
    """Weights of the benchmarks, which sum to 1.

    Raises:
        ValueError: the instruct models are no better than the base models on one of them.
    """
    inverse: dict[str, float] = {}
    for name in benchmarks:
        gap = fmean(one[name] for one in instruct.values()) - fmean(one[name] for one in base.values())
        if gap <= 0:
            raise ValueError(
                f"on {name} instruct models are {-gap:g} points below base models: it has no weight by this rule"
            )
        inverse[name] = 1 / gap
    total = math.fsum(inverse.values())
    return {name: value / total for name, value in inverse.items()}


def weighted_average(scores: Scores, weights: Mapping[str, float]) -> float:
    """Points of all models on all benchmarks: each benchmark's mean over the models, times its weight.

    Raises:
        ValueError: there are no models, or one lacks a benchmark.
    """
    if not scores:
        raise ValueError("no model has a score")
    for model, of_model in scores.items():
        missing = sorted(weights.keys() - of_model.keys())
        if missing:
            raise ValueError(f"{model} has no score on {', '.join(missing)}")
    return math.fsum(weight * fmean(one[name] for one in scores.values()) for name, weight in weights.items())
