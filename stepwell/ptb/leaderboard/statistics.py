"""Means of few runs, with what is not known about them."""

import math
from collections.abc import Sequence
from functools import cache
from statistics import fmean, stdev

from pydantic import BaseModel, ConfigDict

ENOUGH = 5
"""Runs below which a mean is marked insufficient."""
_STEPS = 200
_TAIL = 0.975


class Spread(BaseModel):
    """A mean over runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: float
    deviation: float | None
    """Sample standard deviation (n - 1); None for one run."""
    low: float | None
    """Of the 95 % interval of the mean by Student's t; None for one run."""
    high: float | None
    n: int

    @property
    def insufficient(self) -> bool:
        """Whether there are too few runs to trust the interval."""
        return self.n < ENOUGH


def spread(values: Sequence[float]) -> Spread:
    """Mean, sample deviation and 95 % interval.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("no runs: a mean needs at least one")
    mean, n = fmean(values), len(values)
    if n == 1:
        return Spread(mean=mean, deviation=None, low=None, high=None, n=1)
    deviation = stdev(values)
    half = t_quantile(n - 1) * deviation / math.sqrt(n)
    return Spread(mean=mean, deviation=deviation, low=mean - half, high=mean + half, n=n)


def are_apart(one: Spread, other: Spread) -> bool:
    """Whether two means differ at 5 %, by Welch's test (Welch 1947). One run is apart from nothing; of two means
    without any deviation those that differ are apart."""
    if one.deviation is None or other.deviation is None:
        return False
    first, second = one.deviation**2 / one.n, other.deviation**2 / other.n
    error = math.sqrt(first + second)
    difference = abs(one.mean - other.mean)
    if error == 0:
        return difference > 0
    freedom = (first + second) ** 2 / (first**2 / (one.n - 1) + second**2 / (other.n - 1))
    return difference / error > t_quantile(freedom)


@cache
def t_quantile(freedom: float) -> float:
    """The 97.5 % quantile of Student's t, by bisection of its distribution function.

    Args:
        freedom: Degrees of freedom, 1 or more, not necessarily whole.

    Raises:
        ValueError: fewer than 1.
    """
    if not freedom >= 1:
        raise ValueError(f"{freedom} degrees of freedom: wanted 1 or more")
    low, high = 0.0, 20.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _t_below(middle, freedom) < _TAIL:
            low = middle
        else:
            high = middle
    return high


def _t_below(t: float, freedom: float) -> float:
    """Share of Student's t below `t`, which is not negative."""
    return 1 - _beta_share(freedom / (freedom + t * t), freedom / 2, 0.5) / 2


def _beta_share(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22)."""
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return front / a / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """Evaluates 1 + d_1 / (1 + d_2 / (1 + …)) from its end; after so many terms nothing moves any more."""
    value = 1.0
    for term in range(_STEPS, 0, -1):
        m = term // 2
        if term % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1 + d / value
    return value
