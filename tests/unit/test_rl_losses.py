"""Each loss and correction against its formula in float64, its gradient against finite differences of that formula."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.rl.config import GrpoConfig
from stepwell.rl.losses.policy_loss import LossRows, policy_loss
from stepwell.rl.samples import MissingLogprob
from tests.loss_formulas import (
    CLIPPED,
    EVERY,
    ON_POLICY,
    Rollout,
    batch_loss,
    finite_differences,
    name_of,
    random_rollouts,
)
from tests.loss_sums import sums_of

OFF_POLICY = {"force_on_policy_ratio": False}
OPEN = {"mismatch_max": None}

tokens = st.tuples(st.floats(-4, -0.01), st.floats(-1.2, 1.2)).map(lambda pair: (pair[0], pair[0] - pair[1]))
rows = st.lists(tokens, min_size=1, max_size=5).map(tuple)
advantages = st.sampled_from([-1.3, -0.25, 0.0, 0.4, 2.0])
lone_rows = st.lists(st.builds(lambda a, row: Rollout(a, (row,)), advantages, rows), min_size=1, max_size=5)
several_rows = st.lists(
    st.builds(Rollout, advantages, st.lists(rows, min_size=1, max_size=3).map(tuple)), min_size=1, max_size=4
)


@pytest.mark.parametrize("config", EVERY, ids=name_of)
@settings(deadline=None, max_examples=20)
@given(rollouts=lone_rows)
def test_loss_matches_the_formula(config: GrpoConfig, rollouts: list[Rollout]) -> None:
    assert sums_of(rollouts, config).loss == pytest.approx(batch_loss(rollouts, config), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("config", [each for each in EVERY if each.mismatch_max is None], ids=name_of)
@settings(deadline=None, max_examples=20)
@given(rollouts=several_rows)
def test_a_rollout_of_several_rows_is_one_sequence_of_the_mean(config: GrpoConfig, rollouts: list[Rollout]) -> None:
    assert sums_of(rollouts, config).loss == pytest.approx(batch_loss(rollouts, config), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("config", EVERY, ids=name_of)
def test_gradient_matches_finite_differences_of_the_formula(config: GrpoConfig, seed: int) -> None:
    rollouts = random_rollouts(seed)
    found = sums_of(rollouts, config)
    gradient = (found.gradient / float(found.divisor)).tolist()
    assert gradient == pytest.approx(finite_differences(rollouts, config), rel=1e-6, abs=1e-8)
    assert any(gradient)


@pytest.mark.parametrize("config", [*ON_POLICY, *CLIPPED], ids=name_of)
def test_where_the_engine_is_the_trainer_every_loss_is_the_plain_policy_gradient(config: GrpoConfig) -> None:
    rollouts = random_rollouts(0, spread=0.0)
    found = sums_of(rollouts, config.model_copy(update={"loss_agg_mode": "token_mean"}))
    wanted = [-each.advantage for each in rollouts for _ in each.rows[0]]
    assert found.gradient.tolist() == pytest.approx(wanted, rel=1e-9)
    assert sum(part.clipped_tokens for part in found.parts) == 0


def test_cispo_without_a_lower_bound_moves_the_weights_as_tis_does() -> None:
    rollouts = random_rollouts(1, spread=1.0)
    cispo = sums_of(rollouts, GrpoConfig(**OFF_POLICY, loss="cispo", clip_high=0.5, **OPEN))
    tis = sums_of(rollouts, GrpoConfig(importance="tis", importance_max=1.5, **OPEN))
    assert cispo.gradient.tolist() == pytest.approx(tis.gradient.tolist(), rel=1e-12)
    assert cispo.parts[0].clipped_tokens == tis.parts[0].clipped_tokens > 0


def test_row_out_of_bounds_weighs_nothing_but_stays_in_the_denominator() -> None:
    rollouts = [Rollout(1.0, (((-1.0, -1.002), (-1.0, -1.003)),)), Rollout(1.0, (((-1.0, -1.0005),),))]
    found = sums_of(rollouts, GrpoConfig())
    assert found.parts[0].out_of_bounds_B.tolist() == [True, False]
    assert (found.divisor, found.parts[0].counted_tokens) == (3, 3)
    assert found.loss == pytest.approx(batch_loss(rollouts, GrpoConfig()))
    assert found.gradient[:2].tolist() == [0.0, 0.0]


def test_mismatched_row_leaves_the_denominator_too() -> None:
    rollouts = [Rollout(1.0, (((-1.0, -1.7), (-1.0, -0.2)),)), Rollout(1.0, (((-1.0, -1.0),),))]
    found = sums_of(rollouts, GrpoConfig())
    assert found.parts[0].mismatched_B.tolist() == [True, False]
    assert found.parts[0].out_of_bounds_B.tolist() == [False, False]
    assert (found.divisor, found.parts[0].counted_tokens) == (1, 1)


@pytest.mark.parametrize(
    ("config", "clipped"),
    [
        (GrpoConfig(**OFF_POLICY, **OPEN), 2),  # up with a gain, down with a loss: the other two go back
        (GrpoConfig(**OFF_POLICY, loss="gspo", **OPEN), 2),  # the first row whole; the second's mean is 1
        (GrpoConfig(**OFF_POLICY, loss="cispo", clip_high=0.3, **OPEN), 2),
        (GrpoConfig(**OFF_POLICY, loss="cispo", clip_low=0.2, clip_high=0.3, **OPEN), 3),
        (GrpoConfig(importance="tis", importance_max=1.3, **OPEN), 2),
        (GrpoConfig(importance="tis", importance_min=0.8, importance_max=1.3, **OPEN), 3),
        (GrpoConfig(importance="icepop", importance_min=0.8, importance_max=1.3, **OPEN), 3),
        (GrpoConfig(importance="icepop", **OPEN), 0),
        (GrpoConfig(importance_min=0.8, importance_max=1.1, **OPEN), 0),  # it masks the first row: no token by itself
        (GrpoConfig(importance="none", **OPEN), 0),
    ],
)
def test_clip_counts_the_tokens_over_which_a_bound_decides(config: GrpoConfig, clipped: int) -> None:
    rollouts = [
        Rollout(1.0, (((-1.0, -1.3), (-1.0, -1.1)),)),
        Rollout(-1.0, (((-1.0, -1.3), (-1.0, -0.7)),)),
    ]
    assert sums_of(rollouts, config).parts[0].clipped_tokens == clipped


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (GrpoConfig(**OFF_POLICY), 0.0),  # masked by mismatch, as with all that have a mask
        (GrpoConfig(**OFF_POLICY, loss="gspo"), 0.0),
        (GrpoConfig(), 0.0),
        (GrpoConfig(importance="icepop", **OPEN), 0.0),
        (GrpoConfig(importance="tis", **OPEN), -2.0),
        (GrpoConfig(**OFF_POLICY, loss="cispo", **OPEN), -5.0),
    ],
)
def test_an_overflowing_ratio_leaves_gradients_that_are_numbers(config: GrpoConfig, wanted: float) -> None:
    own = torch.tensor([-0.1, -0.2], requires_grad=True)
    lost = LossRows(own, torch.tensor([-900.0, -0.2]), torch.tensor([0, 1]), torch.ones(2), torch.ones(2))
    policy_loss(lost, config).loss_sum.backward()
    assert own.grad is not None
    assert own.grad.tolist() == [wanted, -1.0]


@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_logprob_that_is_not_finite_is_refused(bad: float) -> None:
    one = torch.ones(1)
    with pytest.raises(MissingLogprob):
        policy_loss(LossRows(-one, torch.tensor([bad]), torch.tensor([0]), one, one), GrpoConfig())
