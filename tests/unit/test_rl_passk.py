"""pass@k against enumeration; intervals against published values and simulation."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.rl.passk import bootstrap_mean, pass_all_k, pass_at_k, wilson


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_estimates_match_enumeration_of_all_draws(counts: tuple[int, int, int]) -> None:
    samples, passed, k = counts
    draws = list(combinations([True] * passed + [False] * (samples - passed), k))
    assert pass_at_k(samples, passed, k) == pytest.approx(np.mean([any(draw) for draw in draws]))
    assert pass_all_k(samples, passed, k) == pytest.approx(np.mean([all(draw) for draw in draws]))


@pytest.mark.parametrize(("samples", "passed", "k"), [(4, 5, 1), (4, 1, 5), (4, -1, 1), (4, 1, 0)])
def test_impossible_counts_are_refused(samples: int, passed: int, k: int) -> None:
    with pytest.raises(ValueError, match="samples passed"):
        pass_at_k(samples, passed, k)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # Newcombe 1998, table I (method 3, score interval).
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_interval_matches_published_values(successes: int, trials: int, low: float, high: float) -> None:
    found = wilson(successes, trials)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert found.value == successes / trials


def test_bootstrap_interval_is_that_of_the_normal_approximation() -> None:
    values = np.random.default_rng(0).binomial(1, 0.6, 400).astype(float)
    found = bootstrap_mean(values.tolist(), seed=1)
    half = 1.96 * values.std() / 20
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.006)


def test_bootstrap_is_a_function_of_its_seed() -> None:
    values = [index**2 / 7 for index in range(30)]
    assert bootstrap_mean(values, seed=3) == bootstrap_mean(values, seed=3)
    assert bootstrap_mean(values, seed=3) != bootstrap_mean(values, seed=4)


def test_nothing_has_no_mean() -> None:
    with pytest.raises(ValueError, match="at least one task"):
        bootstrap_mean([], seed=0)
    with pytest.raises(ValueError, match="no proportion"):
        wilson(0, 0)
