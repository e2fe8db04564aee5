"""A batch's loss is what its micro-batches add up to, however they are cut and whoever computes them."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.rl.batching import BatchRow
from stepwell.rl.config import GrpoConfig
from stepwell.rl.losses.aggregation import divisor, token_weight
from tests.loss_formulas import CLIPPED, EVERY, MEANS, ON_POLICY, Rollout, name_of, random_rollouts
from tests.loss_sums import sums_of


@st.composite
def cuts_of(draw: st.DrawFn, rows: int) -> list[list[int]]:
    """Rows in any order, in micro-batches of any size."""
    order = draw(st.permutations(range(rows)))
    ends = sorted({rows, *draw(st.lists(st.integers(1, rows), max_size=rows))})
    return [list(order[begin:end]) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


@pytest.mark.parametrize("config", EVERY, ids=name_of)
@settings(deadline=None, max_examples=10)
@given(data=st.data(), seed=st.integers(0, 3))
def test_micro_batches_add_up_to_the_batch(config: GrpoConfig, data: st.DataObject, seed: int) -> None:
    rollouts = random_rollouts(seed, rows=3)
    rows = sum(len(each.rows) for each in rollouts)
    whole, cut = sums_of(rollouts, config), sums_of(rollouts, config, data.draw(cuts_of(rows)))
    assert cut.divisor == whole.divisor
    assert cut.loss_sum == pytest.approx(whole.loss_sum, rel=1e-12, abs=1e-12)
    assert cut.gradient.tolist() == pytest.approx(whole.gradient.tolist(), rel=1e-12, abs=1e-15)
    for count in ("clipped_tokens", "counted_tokens"):
        assert sum(getattr(part, count) for part in cut.parts) == getattr(whole.parts[0], count)


binary = st.sampled_from([-2.0, -0.75, 0.5, 1.25])
powers = st.sampled_from([1, 2, 4, 8])


@pytest.mark.parametrize("mean", MEANS, ids=lambda mean: mean["loss_agg_mode"])
@settings(deadline=None, max_examples=30)
@given(data=st.data(), sizes=st.lists(st.tuples(binary, powers), min_size=1, max_size=8))
def test_sums_that_need_no_rounding_are_equal_to_the_bit(
    mean: dict[str, object], data: st.DataObject, sizes: list[tuple[float, int]]
) -> None:
    config = GrpoConfig.model_validate({"importance": "none", **mean})
    rollouts = [Rollout(advantage, (((-1.0, -1.0),) * length,)) for advantage, length in sizes]
    whole, cut = sums_of(rollouts, config), sums_of(rollouts, config, data.draw(cuts_of(len(rollouts))))
    assert (cut.loss_sum, cut.divisor) == (whole.loss_sum, whole.divisor)
    assert cut.gradient.tolist() == whole.gradient.tolist()


def recorded(generated: int, of: int) -> BatchRow:
    return BatchRow("rollout", 99, generated, "content", None, 1.0, of)


@pytest.mark.parametrize(
    ("mean", "weight", "divided"),
    [(MEANS[0], 1.0, 3), (MEANS[1], 0.25, Fraction(3, 4)), (MEANS[2], 1.0, 6)],
    ids=["token_mean", "seq_mean_token_mean", "seq_mean_token_sum_norm"],
)
def test_a_row_counts_by_its_share_of_its_rollout(mean: dict[str, object], weight: float, divided: Fraction) -> None:
    config = GrpoConfig.model_validate(mean)
    row = recorded(3, of=4)
    assert (token_weight(row, config), divisor(row, config)) == (weight, divided)


@given(lengths=st.lists(st.integers(1, 50), min_size=1, max_size=30))
def test_the_divisor_of_whole_rollouts_is_their_number_to_the_bit(lengths: list[int]) -> None:
    config = GrpoConfig(loss_agg_mode="seq_mean_token_mean")
    rows = [recorded(part, of=length) for length in lengths for part in (length // 3, length - length // 3) if part]
    assert sum((divisor(row, config) for row in rows), Fraction(0)) == len(lengths)


def test_of_a_rollout_that_is_masked_in_part_the_rest_counts_by_its_share() -> None:
    config = GrpoConfig(importance="none", loss_agg_mode="seq_mean_token_mean")
    kept, masked = ((-1.0, -1.0),) * 3, ((-1.0, -2.0),)
    found = sums_of([Rollout(2.0, (kept, masked)), Rollout(-1.0, (kept,))], config)
    assert found.divisor == Fraction(3, 4) + 1
    assert found.loss_sum == pytest.approx(-2.0 * 3 / 4 + 1.0)


@pytest.mark.parametrize("config", [*ON_POLICY, *CLIPPED], ids=name_of)
def test_a_batch_that_is_masked_whole_is_divided_by_nothing(config: GrpoConfig) -> None:
    masking = config.model_copy(update={"mismatch_max": 1.0})
    found = sums_of([Rollout(1.0, (((-1.0, -1.5), (-1.0, -0.5)),))], masking)
    assert (found.divisor, found.loss, found.gradient.tolist()) == (0, 0.0, [0.0, 0.0])
