"""pass@k and pass^k with their uncertainty."""

import math
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict


class Estimate(BaseModel):
    """A value and its 95 % interval."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    low: float
    high: float


Z_95 = 1.959963984540054


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """Unbiased estimate of the chance that at least one of k samples passes: 1 - C(n-c, k) / C(n, k)
    (Chen et al. 2021, arXiv:2107.03374)."""
    _check_counts(samples, passed, k)
    return 1.0 - math.comb(samples - passed, k) / math.comb(samples, k)


def pass_all_k(samples: int, passed: int, k: int) -> float:
    """Unbiased estimate of the chance that all of k samples pass (pass^k): C(c, k) / C(n, k)."""
    _check_counts(samples, passed, k)
    return math.comb(passed, k) / math.comb(samples, k)


def wilson(successes: int, trials: int) -> Estimate:
    """A proportion with its Wilson score interval at 95 % (Wilson 1927).

    Raises:
        ValueError: no trials, or more successes than trials.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials is no proportion")
    share, z2 = successes / trials, Z_95**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z_95 / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Estimate(value=share, low=low, high=high)


def bootstrap_mean(values: Sequence[float], *, seed: int, resamples: int = 2000) -> Estimate:
    """The mean over tasks with its percentile bootstrap interval at 95 %, resampling tasks (not samples, which share a
    task). Deterministic in the seed (PCG64).

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("no values: a mean needs at least one task")
    values_N = np.asarray(values, dtype=np.float64)
    picks_RN = np.random.Generator(np.random.PCG64(seed)).integers(0, len(values_N), (resamples, len(values_N)))
    low, high = np.quantile(values_N[picks_RN].mean(axis=1), [0.025, 0.975])
    return Estimate(value=math.fsum(values) / len(values), low=float(low), high=float(high))


class PassRates(BaseModel):
    """What k samples of each task say of a policy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pass_1: Estimate
    """Mean over tasks of the share of samples that pass; percentile bootstrap over tasks, seed 0."""
    pass_k: Estimate
    """pass@k: share of tasks that any sample passes; Wilson's interval."""
    pass_all: Estimate
    """pass^k: share of tasks that every sample passes; Wilson's interval."""


def pass_rates(passed: Sequence[int], graded: Sequence[int]) -> PassRates | None:
    """From the counts of each task. Where k samples are taken, pass@k and pass^k are shares of tasks, so that Wilson's
    interval fits; the shares that pass@1 averages are no coins, so that tasks are drawn again (Efron 1979).

    Args:
        passed: Of each task, samples that passed.
        graded: Of each task, samples with a score; a task without any is left out.

    Raises:
        ValueError: the two differ in length, or more passed than were graded.
    """
    tasks = [(won, of) for won, of in zip(passed, graded, strict=True) if of]
    if not tasks:
        return None
    return PassRates(
        pass_1=bootstrap_mean([won / of for won, of in tasks], seed=0),
        pass_k=wilson(sum(pass_at_k(of, won, of) > 0 for won, of in tasks), len(tasks)),
        pass_all=wilson(sum(pass_all_k(of, won, of) > 0 for won, of in tasks), len(tasks)),
    )


def _check_counts(samples: int, passed: int, k: int) -> None:
    if not (0 <= passed <= samples and 1 <= k <= samples):
        raise ValueError(
            f"{passed} of {samples} samples passed, k = {k}: wanted 0 <= passed <= samples, 1 <= k <= samples"
        )
