"""pass@k against enumeration; intervals against published values and simulation."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.rl.passk import bootstrap_mean, pass_all_k, pass_at_k, pass_rates, wilson


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


def test_rates_are_shares_of_tasks_and_of_samples() -> None:
    rates = pass_rates([0, 2, 4, 4], [4, 4, 4, 4])
    assert rates is not None
    assert (rates.pass_1.value, rates.pass_k.value, rates.pass_all.value) == (0.625, 0.75, 0.5)
    assert rates.pass_k == wilson(3, 4)
    assert rates.pass_all == wilson(2, 4)
    assert rates.pass_1 == bootstrap_mean([0.0, 0.5, 1.0, 1.0], seed=0)


def test_a_task_without_a_score_is_left_out_and_without_any_there_are_no_rates() -> None:
    rates = pass_rates([0, 3], [0, 3])
    assert rates is not None
    assert rates.pass_all.value == 1.0
    assert pass_rates([0], [0]) is None


@given(tasks=st.lists(st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1))
def test_all_pass_no_oftener_than_one_and_one_no_oftener_than_any(tasks: list[tuple[int, int]]) -> None:
    rates = pass_rates([won for won, _ in tasks], [of for _, of in tasks])
    assert rates is not None
    assert rates.pass_all.value <= rates.pass_1.value + 1e-12
    assert rates.pass_1.value <= rates.pass_k.value + 1e-12
