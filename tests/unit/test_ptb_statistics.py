"""Means of few runs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.leaderboard.statistics import are_apart, spread, t_quantile


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    # Tables of Student's t, two-sided 95 %; the last is the normal's.
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (29, 2.0452), (100, 1.9840), (10**6, 1.9600)],
)
def test_the_quantile_is_that_of_the_tables(freedom: float, quantile: float) -> None:
    assert t_quantile(freedom) == pytest.approx(quantile, abs=6e-5)


@given(st.floats(min_value=1, max_value=1e5))
def test_two_degrees_of_freedom_bracket_what_lies_between_them(freedom: float) -> None:
    assert t_quantile(freedom + 1) < t_quantile(freedom)


@pytest.mark.parametrize("freedom", [0, -1, 0.5, math.nan])
def test_fewer_than_one_degree_of_freedom_is_refused(freedom: float) -> None:
    with pytest.raises(ValueError, match="wanted 1 or more"):
        t_quantile(freedom)


def test_the_interval_is_by_hand() -> None:
    of = spread([20.0, 22.0, 24.0, 26.0, 28.0])
    assert of.deviation is not None
    assert of.low is not None
    assert (of.mean, of.deviation, of.n, of.insufficient) == (24.0, pytest.approx(math.sqrt(10)), 5, False)
    assert of.mean - of.low == pytest.approx(2.776445 * math.sqrt(10) / math.sqrt(5), abs=1e-5)


def test_four_runs_are_not_enough_and_one_has_no_interval() -> None:
    assert spread([1.0, 2.0, 3.0, 4.0]).insufficient
    assert spread([1.0]).high is None
    with pytest.raises(ValueError, match="at least one"):
        spread([])


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ([1.0], [100.0, 100.0], False),
        ([5.0, 5.0], [6.0, 6.0], True),
        ([5.0, 5.0], [5.0, 5.0], False),
        ([20.0, 22.0, 24.0], [21.0, 23.0, 25.0], False),
        # t = 10 / sqrt(2 · 1 / 3) = 12.2 with 4 degrees of freedom
        ([9.0, 10.0, 11.0], [19.0, 20.0, 21.0], True),
        # t = 2.45 with 4 degrees of freedom, below 2.776
        ([9.0, 10.0, 11.0], [11.0, 12.0, 13.0], False),
    ],
)
def test_means_are_apart_by_welchs_test(one: list[float], other: list[float], apart: bool) -> None:
    assert are_apart(spread(one), spread(other)) is apart
    assert are_apart(spread(other), spread(one)) is apart
