"""Real steps by each loss: of the micro policy, whose figures must mean what they say; and of a tiny model, whose
update must be the same however the batch is cut and dealt."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from stepwell.policy.micro.shipped import FOLDER
from stepwell.policy.trainers.dealing import deal
from stepwell.policy.trainers.protocol import TrainBatch
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.rl.config import GrpoConfig, OptimiserConfig, PackingConfig
from stepwell.rl.masks import MaskReason
from stepwell.rl.samples import TrainSample
from tests.loss_formulas import CLIPPED, MEANS, ON_POLICY, Rollout, batch_loss, name_of
from tests.small_models import REWARDS, make_batch, make_batch_of_rows, make_folder, make_samples, make_trainer

STEPPED = [
    GrpoConfig.model_validate(config.model_dump() | MEANS[index % len(MEANS)] | {"mismatch_max": 2.0})
    for index, config in enumerate((*ON_POLICY, *CLIPPED))
]
SHIFTS = [0.5, 0.0, 0.8, 0.0]
"""Nats by which the engine's log-probabilities of each rollout are below the trainer's: exp(0.5) is above the bounds of
all ratios but one, exp(0.8) above `mismatch_max`."""
GAINS = [1.0, 0.0, 0.0, 1.0]
RAW = {"importance": "none", "mismatch_max": None}


def sampled_by(trainer: TorchTrainer, shifts: Sequence[float]) -> list[TrainSample]:
    """Rows with the trainer's own log-probabilities, less a shift each."""
    samples: list[TrainSample] = []
    for sample, shift in zip(make_samples(len(shifts)), shifts, strict=True):
        own = [value for value, flag in zip(trainer.probe(sample.token_ids), sample.generated[1:], strict=True) if flag]
        samples.append(sample.model_copy(update={"logprobs": tuple(value - shift for value in own)}))
    return samples


@pytest.mark.parametrize("grpo", STEPPED, ids=name_of)
def test_each_loss_takes_a_step_of_the_micro_policy_and_says_what_it_did(grpo: GrpoConfig) -> None:
    trainer = TorchTrainer.from_folder(FOLDER, OptimiserConfig(learning_rate=1e-3), grpo, threads=1)
    samples = sampled_by(trainer, SHIFTS)
    batch, before = make_batch(samples, GAINS, grpo=grpo), trainer.digests()
    result = trainer.step(batch)
    lengths = [sum(sample.generated) for sample in samples]
    kept = sum(lengths) - lengths[2]
    assert math.isfinite(result.loss)
    assert result.grad_norm > 0
    assert trainer.version == 1
    assert trainer.digests().master != before.master
    assert result.loss == pytest.approx(batch_loss(as_rollouts(batch, SHIFTS), grpo), rel=1e-4, abs=1e-5)
    assert result.loss_tokens == kept
    masked = {MaskReason.MISMATCH: 1} | ({MaskReason.IMPORTANCE: 1} if grpo.importance == "seq_mask_tis" else {})
    assert result.mask_counts == masked
    assert result.metrics()["masked_mismatch"] == 1.0
    bounded = 0 if grpo.importance in ("none", "seq_mask_tis") or grpo.clip_high == 4.0 else lengths[0]
    assert result.clip_fraction == bounded / kept


def as_rollouts(batch: TrainBatch, shifts: Sequence[float]) -> list[Rollout]:
    """For the formulas."""
    found: list[Rollout] = []
    for sample, row, shift in zip(batch.samples, batch.recorded, shifts, strict=True):
        assert sample is not None
        found.append(Rollout(row.advantage, (tuple((value + shift, value) for value in sample.logprobs),)))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("model") / "qwen3")


def several_rows(packing: PackingConfig) -> TrainBatch:
    rows = iter(make_samples(24))
    rollouts = [[next(rows) for _ in range(1 + index % 3)] for index in range(len(REWARDS))]
    return make_batch_of_rows(rollouts, REWARDS, packing=packing)


@pytest.mark.parametrize("mean", MEANS, ids=lambda mean: mean["loss_agg_mode"])
def test_cutting_and_dealing_do_not_change_the_update(folder: Path, mean: dict[str, object]) -> None:
    grpo = GrpoConfig.model_validate(RAW | mean)
    narrow = several_rows(PackingConfig(micro_batch_tokens=64, pad_multiple=8))
    whole = make_trainer(folder, grpo).step(several_rows(PackingConfig(micro_batch_tokens=100_000)))
    cut = make_trainer(folder, grpo).step(narrow)
    # As two ranks do it: each computes its share, the gradients are added, all tallies are known to each.
    first, second = make_trainer(folder, grpo), make_trainer(folder, grpo)
    shares = deal(narrow.manifest, 2)
    tallies = first.accumulate(narrow, shares[0]) | second.accumulate(narrow, shares[1])
    for ours, theirs in zip(first.gradients(), second.gradients(), strict=True):
        ours.add_(theirs)
    dealt = first.apply(narrow.manifest, tallies, None, 0.0)
    assert cut.loss == pytest.approx(whole.loss, rel=1e-5)
    assert dealt.loss == cut.loss
    assert [cut.grad_norm, dealt.grad_norm] == pytest.approx([whole.grad_norm] * 2, rel=1e-5)


def test_means_weigh_rollouts_as_the_formulas_do(folder: Path) -> None:
    """Against the gradient of each rollout alone: the update is linear in them where nothing is clipped."""
    samples = make_samples(4)
    rewards = [1.0, 0.0, 0.0, 0.0]
    plain = OptimiserConfig(learning_rate=1e-3, beta1=0.5, max_grad_norm=None)
    found: dict[str, dict[str, torch.Tensor]] = {}
    for mean in MEANS:
        trainer = make_trainer(folder, GrpoConfig.model_validate(RAW | mean), optimiser=plain)
        trainer.step(make_batch(samples, rewards))
        moments = trainer.optimiser_state().tensors
        found[str(mean["loss_agg_mode"])] = {n: t.double() * 2 for n, t in moments.items() if n.endswith(".exp_avg")}
    tokens = sum(sum(sample.generated) for sample in samples)
    for name, gradient in found["token_mean"].items():
        # Sums over tokens both, divided by the tokens, or by four rollouts and the constant.
        assert torch.allclose(found["seq_mean_token_sum_norm"][name], gradient * tokens / (4 * 8), rtol=1e-4, atol=1e-7)
    assert any(
        not torch.allclose(found["seq_mean_token_mean"][name], gradient, rtol=0.01)
        for name, gradient in found["token_mean"].items()
    )
