"""The loss against an independent formula in float64, and its gradient against finite differences."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.rl.config import GrpoConfig
from stepwell.rl.losses import GrpoLoss, grpo_loss
from stepwell.rl.samples import MissingLogprob

FORCED = GrpoConfig(importance_min=0.8, importance_max=1.3)
PLAIN = GrpoConfig(importance="none", mismatch_max=None)
CLIPPED = GrpoConfig(force_on_policy_ratio=False)
CLIPPED_UNMASKED = GrpoConfig(force_on_policy_ratio=False, mismatch_max=None)
CONFIGS = [FORCED, PLAIN, CLIPPED, CLIPPED_UNMASKED]

nats = st.floats(-4, -0.01)
rows = st.lists(
    st.tuples(
        st.sampled_from([-1.3, -0.25, 0.0, 0.4, 2.0]),
        st.lists(st.tuples(nats, st.floats(-1.2, 1.2)), min_size=1, max_size=5),
    ),
    min_size=1,
    max_size=5,
)
Rows = list[tuple[float, list[tuple[float, float]]]]


def reference(rows: Rows, config: GrpoConfig) -> tuple[float, int]:
    """Loss sum and counted tokens, row by row, written from the formula and not from the code."""
    total, counted = 0.0, 0
    for advantage, tokens in rows:
        trainer = np.array([p for p, _ in tokens])
        engine = np.array([p - shift for p, shift in tokens])
        if config.mismatch_max is not None and np.mean(np.exp(np.abs(trainer - engine))) > config.mismatch_max:
            continue
        counted += len(tokens)
        ratio = np.exp(trainer) / np.exp(engine)
        if config.force_on_policy_ratio:
            weight = np.ones(len(tokens))
            if config.importance == "seq_mask_tis":
                geometric = np.prod(ratio) ** (1 / len(tokens))
                weight = ratio if config.importance_min <= geometric <= config.importance_max else 0 * ratio
            total += float(np.sum(-advantage * weight))
        else:
            bounded = np.minimum(np.maximum(ratio, 1 - config.clip_low), 1 + config.clip_high)
            total += float(np.sum(-np.minimum(advantage * ratio, advantage * bounded)))
    return total, counted


def compute(rows: Rows, config: GrpoConfig, trainer: torch.Tensor | None = None) -> GrpoLoss:
    own = torch.tensor([p for _, tokens in rows for p, _ in tokens], dtype=torch.float64)
    engine = torch.tensor([p - shift for _, tokens in rows for p, shift in tokens], dtype=torch.float64)
    row = torch.tensor([index for index, (_, tokens) in enumerate(rows) for _ in tokens])
    advantages = torch.tensor([advantage for advantage, _ in rows], dtype=torch.float64)
    return grpo_loss(own if trainer is None else trainer, engine, row, advantages, config)


@pytest.mark.parametrize("config", CONFIGS)
@given(rows=rows)
def test_loss_matches_the_formula(config: GrpoConfig, rows: Rows) -> None:
    total, counted = reference(rows, config)
    found = compute(rows, config)
    assert found.loss_sum.item() == pytest.approx(total, rel=1e-9, abs=1e-9)
    assert found.counted_tokens == counted


@pytest.mark.parametrize("config", CONFIGS)
@settings(deadline=None)
@given(rows=rows)
def test_gradient_is_the_score_function_with_its_weights(config: GrpoConfig, rows: Rows) -> None:
    own = torch.tensor([p for _, tokens in rows for p, _ in tokens], dtype=torch.float64, requires_grad=True)
    compute(rows, config, own).loss_sum.backward()
    assert own.grad is not None
    wanted: list[float] = []
    for advantage, tokens in rows:
        lone = [(advantage, tokens)]
        base, counted = reference(lone, config)
        for _, shift in tokens:
            ratio = math.exp(shift)
            if not counted or (base == 0 and config.force_on_policy_ratio):
                wanted.append(0.0)
            elif config.force_on_policy_ratio:
                wanted.append(-advantage * (ratio if config.importance == "seq_mask_tis" else 1.0))
            else:
                free = not (advantage > 0 and ratio > 1.28) and not (advantage < 0 and ratio < 0.8)
                wanted.append(-advantage * ratio if free else 0.0)
    assert own.grad.tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_gradient_of_the_clipped_loss_matches_finite_differences() -> None:
    rows: Rows = [(0.7, [(-1.0, 0.1), (-0.5, 0.4), (-2.0, -0.3)]), (-1.1, [(-0.7, 0.2), (-0.9, -0.6)])]
    own = torch.tensor([-1.0, -0.5, -2.0, -0.7, -0.9], dtype=torch.float64, requires_grad=True)
    engine = torch.tensor([p - shift for _, tokens in rows for p, shift in tokens], dtype=torch.float64)
    row, advantages = torch.tensor([0, 0, 0, 1, 1]), torch.tensor([0.7, -1.1], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda p: grpo_loss(p, engine, row, advantages, CLIPPED).loss_sum, (own,))


def test_row_out_of_bounds_weighs_nothing_but_stays_in_the_denominator() -> None:
    found = compute([(1.0, [(-1.0, 0.002), (-1.0, 0.003)]), (1.0, [(-1.0, 0.0005)])], GrpoConfig())
    assert found.out_of_bounds_B.tolist() == [True, False]
    assert found.counted_tokens == 3
    assert found.loss_sum.item() == pytest.approx(-math.exp(0.0005))


def test_mismatched_row_leaves_the_denominator_too() -> None:
    found = compute([(1.0, [(-1.0, 0.7), (-1.0, -0.8)]), (1.0, [(-1.0, 0.0)])], GrpoConfig())
    assert found.mismatched_B.tolist() == [True, False]
    assert found.out_of_bounds_B.tolist() == [False, False]
    assert found.counted_tokens == 1


def test_row_with_an_overflowing_ratio_is_masked_without_spoiling_the_gradient() -> None:
    own = torch.tensor([-0.1, -0.2], requires_grad=True)
    engine, row = torch.tensor([-900.0, -0.2]), torch.tensor([0, 1])
    grpo_loss(own, engine, row, torch.tensor([1.0, 1.0]), CLIPPED).loss_sum.backward()
    assert own.grad is not None
    assert own.grad.tolist() == [0.0, -1.0]


def test_clip_counts_the_tokens_that_it_decides() -> None:
    found = compute([(1.0, [(-1.0, 0.3), (-1.0, 0.1)]), (-1.0, [(-1.0, 0.3), (-1.0, -0.3)])], CLIPPED)
    assert found.clipped_tokens == 2


@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_logprob_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(MissingLogprob):
        grpo_loss(torch.tensor([-1.0]), torch.tensor([bad]), torch.tensor([0]), torch.tensor([1.0]), GrpoConfig())
