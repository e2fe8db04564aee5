"""Drawing a token, against formulas in float64 written independently."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.policy.engines.sampling import draw, uniform

LOGITS = st.lists(st.floats(-12, 12, width=32), min_size=2, max_size=24)
TEMPERATURE = st.floats(0.05, 4.0)
UNIFORM = st.floats(0, 1, exclude_max=True)


def probabilities(logits: list[float], temperature: float) -> np.ndarray:
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    return weights / weights.sum()


@settings(deadline=None)
@given(LOGITS, TEMPERATURE, st.floats(0.05, 1.0), UNIFORM)
def test_logprob_is_that_of_the_temperature_scaled_distribution_before_top_p(logits, temperature, top_p, number):
    drawn = draw(torch.tensor([logits]), [temperature], [top_p], [number])
    expected = math.log(probabilities(logits, temperature)[drawn.token_ids[0]])
    assert drawn.logprobs[0] == pytest.approx(expected, abs=2e-3, rel=1e-4)


@settings(deadline=None)
@given(LOGITS, TEMPERATURE, UNIFORM)
def test_token_is_where_the_cumulative_distribution_passes_the_uniform_number(logits, temperature, number):
    token = draw(torch.tensor([logits]), [temperature], [1.0], [number]).token_ids[0]
    cumulative = np.concatenate([[0.0], np.cumsum(probabilities(logits, temperature))])
    assert cumulative[token] - 1e-4 <= number <= cumulative[token + 1] + 1e-4


@settings(deadline=None)
@given(LOGITS, TEMPERATURE, st.floats(0.05, 0.999), UNIFORM)
def test_top_p_draws_only_tokens_whose_betters_sum_to_less(logits, temperature, top_p, number):
    token = draw(torch.tensor([logits]), [temperature], [top_p], [number]).token_ids[0]
    chances = probabilities(logits, temperature)
    assert chances[chances > chances[token] * (1 + 1e-5)].sum() < top_p + 1e-5


@pytest.mark.parametrize("top_p", [1.0, 0.8])
def test_frequencies_are_those_of_the_distribution(top_p):
    logits, temperature, draws = [0.3, -1.0, 1.7, 0.9, -0.2], 0.7, 20_000
    numbers = [uniform(seed, 3) for seed in range(draws)]
    drawn = draw(torch.tensor([logits]).expand(draws, -1), [temperature] * draws, [top_p] * draws, numbers)
    chances = probabilities(logits, temperature)
    if top_p < 1:
        kept, total = np.zeros_like(chances), 0.0
        for token in np.argsort(-chances):
            if total < top_p:
                kept[token] = chances[token]
            total += chances[token]
        chances = kept / kept.sum()
    counts = np.bincount(drawn.token_ids, minlength=len(logits))
    assert (counts[chances == 0] == 0).all()
    deviations = (counts - draws * chances)[chances > 0] / np.sqrt((draws * chances * (1 - chances))[chances > 0])
    assert np.abs(deviations).max() < 4


@settings(deadline=None)
@given(st.lists(st.tuples(LOGITS, TEMPERATURE, st.sampled_from([1.0, 0.5, 0.9]), UNIFORM), min_size=2, max_size=6))
def test_a_row_draws_the_same_alone_and_in_a_batch(rows):
    width = max(len(row[0]) for row in rows)
    padded = torch.tensor([row[0] + [-40.0] * (width - len(row[0])) for row in rows])
    together = draw(padded, [row[1] for row in rows], [row[2] for row in rows], [row[3] for row in rows])
    for index, (_, temperature, top_p, number) in enumerate(rows):
        alone = draw(padded[index : index + 1], [temperature], [top_p], [number])
        assert alone.token_ids[0] == together.token_ids[index]
        assert alone.logprobs[0] == pytest.approx(together.logprobs[index], abs=1e-5)


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53])
def test_the_ends_of_the_unit_interval_draw_tokens_with_mass(number):
    logits = torch.tensor([[-200.0, 1.0, 2.0, -200.0]])
    drawn = draw(logits, [1.0], [1.0], [number])
    assert drawn.token_ids[0] in (1, 2)
    assert math.isfinite(drawn.logprobs[0])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_finite_are_refused(bad):
    with pytest.raises(FloatingPointError, match="not finite"):
        draw(torch.tensor([[0.0, bad, 1.0]]), [1.0], [1.0], [0.5])


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**20))
def test_uniform_is_a_function_of_seed_and_index_in_the_unit_interval(seed, index):
    number = uniform(seed, index)
    assert 0 <= number < 1
    assert number == uniform(seed, index)
    assert number != uniform(seed, index + 1)


def test_uniform_numbers_are_spread_evenly():
    numbers = np.asarray([uniform(seed, index) for seed in range(100) for index in range(100)])
    counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
    chi_square = float(((counts - 500) ** 2 / 500).sum())
    assert chi_square < 45  # 19 degrees of freedom: 0.9993 of the time
