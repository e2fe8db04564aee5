"""Advantages against an independent float64 formula in numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.rl.advantages import group_advantages
from stepwell.rl.config import GrpoConfig

MEAN = GrpoConfig(baseline="group_mean", normalise="none")
MEAN_NORMALISED = GrpoConfig(baseline="group_mean")
LOO = GrpoConfig(normalise="none")
BENCHMARK = GrpoConfig()
LOO_GROUP_STD = GrpoConfig(normalise="group_std")

votes = st.lists(
    st.one_of(st.none(), st.sampled_from([0.0, 1.0]), st.integers(-320, 320).map(lambda n: n / 64)),
    min_size=1,
    max_size=24,
)


def matrix_formula(rewards: list[float], config: GrpoConfig) -> np.ndarray:
    """The benchmark's formulation: a matrix that leaves the diagonal out, E[r²] - E[r]², n / (n - 1)."""
    r = np.asarray(rewards, dtype=np.float64)
    full = np.ones((len(r), len(r)))
    used = full - np.eye(len(r)) if config.baseline == "leave_one_out" else full
    baseline = used @ r / used.sum(1)
    spread = used if config.normalise == "baseline_std" else full
    n = spread.sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (spread @ r**2 / n - (spread @ r / n) ** 2) * n / (n - 1)
    std = np.nan_to_num(np.sqrt(np.clip(variance, 0, None)))
    raw = r - baseline
    return raw if config.normalise == "none" else np.where(std > 1e-6, raw / (std + 1e-6), raw)


def test_masked_rollout_has_no_vote_in_the_mean_baseline() -> None:
    assert group_advantages([1, None, 0, 0], MEAN) == [
        pytest.approx(2 / 3),
        None,
        pytest.approx(-1 / 3),
        pytest.approx(-1 / 3),
    ]


def test_masked_rollout_has_no_vote_in_the_normalised_mean_baseline() -> None:
    first, masked, third, fourth = group_advantages([1, None, 0, 0], MEAN_NORMALISED)
    assert masked is None
    assert [first, third, fourth] == pytest.approx([1.155, -0.577, -0.577], abs=5e-4)


def test_masked_rollout_has_no_vote_in_the_leave_one_out_baseline() -> None:
    assert group_advantages([1, None, 0, 0], LOO) == [1.0, None, -0.5, -0.5]


@pytest.mark.parametrize("config", [MEAN, MEAN_NORMALISED, LOO, BENCHMARK, LOO_GROUP_STD])
@pytest.mark.parametrize("successes", range(17))
def test_binary_groups_of_sixteen_match_the_matrix_formula(config: GrpoConfig, successes: int) -> None:
    rewards = [1.0] * successes + [0.0] * (16 - successes)
    assert group_advantages(rewards, config) == pytest.approx(matrix_formula(rewards, config), rel=1e-12)


def test_lone_success_keeps_its_raw_advantage_under_the_benchmarks_deviation() -> None:
    advantages = group_advantages([1.0] + [0.0] * 15, BENCHMARK)
    assert advantages[0] == 1.0
    assert group_advantages([1.0] + [0.0] * 15, LOO_GROUP_STD)[0] == pytest.approx(1 / (0.25 + 1e-6))


@pytest.mark.parametrize("config", [MEAN, MEAN_NORMALISED, LOO, BENCHMARK, LOO_GROUP_STD])
@given(votes=votes)
def test_any_group_matches_the_matrix_formula_over_its_votes(config: GrpoConfig, votes: list[float | None]) -> None:
    found = group_advantages(votes, config)
    rewards = [vote for vote in votes if vote is not None]
    assert [advantage is None for advantage in found] == [vote is None for vote in votes]
    if len(rewards) < 2:
        assert all(advantage in (None, 0.0) for advantage in found)
        return
    wanted = matrix_formula(rewards, config)
    kept = [advantage for advantage in found if advantage is not None]
    assert kept == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@given(reward=st.floats(-1e6, 1e6), size=st.integers(2, 20))
def test_equal_rewards_have_advantages_of_exactly_zero(reward: float, size: int) -> None:
    assert group_advantages([reward] * size, BENCHMARK) == [0.0] * size


@given(votes=st.permutations([1.0, 0.0, 0.0, 0.1, 0.7, 0.3]))
def test_order_of_the_group_changes_no_bit(votes: list[float]) -> None:
    ordered = sorted(votes)
    reference = dict(zip(ordered, group_advantages(ordered, BENCHMARK), strict=True))
    assert group_advantages(votes, BENCHMARK) == [reference[vote] for vote in votes]


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_reward_that_is_not_finite_is_refused(reward: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        group_advantages([1.0, reward], BENCHMARK)
