"""Lengths of what was trained against those of what was generated."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.report.lengths import KS_BOUND, MEAN_BOUND, Length, compare, compare_lengths, ks_statistic, spread

LENGTHS = st.lists(st.integers(0, 30), min_size=1, max_size=40)


@given(LENGTHS, LENGTHS)
def test_ks_is_the_largest_difference_of_the_shares_that_do_not_exceed_a_value(ours: list[int], theirs: list[int]):
    def share(values: list[int], bound: int) -> Fraction:
        return Fraction(sum(value <= bound for value in values), len(values))

    wanted = max(abs(share(ours, bound) - share(theirs, bound)) for bound in range(31))
    assert ks_statistic(ours, theirs) == pytest.approx(float(wanted), abs=1e-12)


@given(LENGTHS)
def test_a_distribution_does_not_differ_from_itself_in_any_order(values: list[int]) -> None:
    assert ks_statistic(values, values[::-1]) == 0
    assert compare("tokens", values, values[::-1]).difference == pytest.approx(0)


def test_ks_of_separate_distributions_is_1_and_of_nothing_is_refused() -> None:
    assert ks_statistic([1, 2], [3, 4]) == 1
    with pytest.raises(ValueError, match="0 and 1 values"):
        ks_statistic([], [1])


@given(LENGTHS)
def test_a_quantile_is_the_least_length_that_its_share_does_not_exceed(values: list[int]) -> None:
    shown = spread(values)
    for share, quantile in zip((0.1, 0.5, 0.9, 1.0), shown.quantiles, strict=True):
        assert sum(value <= quantile for value in values) >= share * len(values) - 1e-9
        assert sum(value < quantile for value in values) < share * len(values) + 1e-9
    assert shown.mean == pytest.approx(sum(values) / len(values))


def test_a_run_that_drops_its_long_rollouts_is_said_to_be_biased() -> None:
    lengths = [Length(100, 2, True)] * 70 + [Length(1000, 20, False)] * 30
    tokens, turns = compare_lengths(lengths)
    assert tokens.is_biased
    assert turns.is_biased
    assert tokens.words() == ("BIAS: trained rollouts are 73.0 % shorter than generated ones in tokens (KS 0.30)")


def test_a_few_rollouts_lost_at_random_are_no_bias() -> None:
    lengths = [Length(100 + number % 10, 2, number % 20 != 0) for number in range(200)]
    tokens, turns = compare_lengths(lengths)
    assert abs(tokens.difference) < MEAN_BOUND
    assert tokens.ks < KS_BOUND
    assert not tokens.is_biased
    assert turns.words() == "trained rollouts are as long as generated ones in turns (KS 0.00)"


def test_longer_is_a_bias_too() -> None:
    (tokens, _) = compare_lengths([Length(10, 1, False), Length(30, 1, True)])
    assert "50.0 % longer" in tokens.words()
    assert tokens.is_biased


@pytest.mark.parametrize("lengths", [[], [Length(5, 1, False)]])
def test_where_nothing_is_trained_nothing_is_compared(lengths: list[Length]) -> None:
    assert compare_lengths(lengths) == ()
