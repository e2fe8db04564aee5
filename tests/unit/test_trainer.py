"""The torch trainer: exactness, determinism, refusals. Models are tiny and random; arithmetic is real."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma2Config, PreTrainedConfig

from stepwell.policy.trainers.protocol import ComputeDtype, NonFinite, TrainBatch, UnsupportedModel, WrongParent
from stepwell.policy.weights import DigestMismatch, WeightsError, load_folder, save_folder, weights_digest
from stepwell.rl.batching import BatchManifest, RolloutFacts, build_manifest
from stepwell.rl.config import GrpoConfig, OptimiserConfig, PackingConfig
from stepwell.rl.masks import MaskReason
from tests.small_models import (
    GPT2,
    LLAMA,
    OPEN,
    PACKING,
    QWEN3,
    REWARDS,
    make_batch,
    make_folder,
    make_samples,
    make_trainer,
    plain_gradient,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("model") / "qwen3")


@pytest.mark.parametrize("config", [QWEN3, LLAMA, GPT2], ids=["qwen3", "llama untied", "gpt2"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_first_update_is_that_of_an_unpacked_float64_gradient(
    tmp_path: Path, config: PreTrainedConfig, temperature: float
) -> None:
    folder = make_folder(tmp_path / "model", config)
    batch = make_batch(make_samples(12), REWARDS, temperature=temperature, masks={3: MaskReason.CONTEXT})
    gradient, mismatch, divergence = plain_gradient(folder, batch, temperature)
    # With beta1 = beta2 = 0 and a large epsilon AdamW's step is the gradient itself, up to its scale.
    optimiser = OptimiserConfig(learning_rate=1.0, beta1=0, beta2=0, epsilon=1e6, max_grad_norm=None)
    trainer = make_trainer(folder, optimiser=optimiser)
    before = load_folder(folder).tensors
    result = trainer.step(batch)
    trainer.export(tmp_path / "after")
    after = load_folder(tmp_path / "after").tensors
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradient.values()))
    assert result.grad_norm == pytest.approx(norm, rel=1e-4)
    assert result.mismatch_mean == pytest.approx(mismatch, rel=1e-4)
    assert result.kl_mean == pytest.approx(divergence, rel=1e-4)
    assert set(gradient) == set(after)
    for name in after:
        assert float((after[name] - before[name]).abs().max()) <= 1e-6 * norm + 1e-7


def test_gradient_of_each_tensor_matches_the_float64_gradient(folder: Path) -> None:
    batch = make_batch(make_samples(12), REWARDS)
    gradient, _, _ = plain_gradient(folder, batch, 1.0)
    trainer = make_trainer(folder, optimiser=OptimiserConfig(learning_rate=1e-3, beta1=0.5, max_grad_norm=None))
    trainer.step(batch)
    moments = trainer.optimiser_state().tensors
    for name, wanted in gradient.items():
        found = moments[f"{name}.exp_avg"].double() * 2  # the first moment is (1 - beta1) of the gradient
        assert float((found - wanted).norm()) <= 1e-4 * float(wanted.norm()) + 1e-9, name


def test_packing_does_not_change_the_update(folder: Path) -> None:
    samples = make_samples(12)
    norms: list[float] = []
    for budget, multiple in ((1, 1), (64, 8), (100_000, 32)):
        packing = PackingConfig(micro_batch_tokens=budget, pad_multiple=multiple)
        result = make_trainer(folder).step(make_batch(samples, REWARDS, packing=packing))
        norms.append(result.grad_norm)
    assert norms == pytest.approx([norms[0]] * 3, rel=1e-5)


def test_rows_without_a_gradient_are_scored_only_and_counted(folder: Path) -> None:
    samples = make_samples(12)
    batch = make_batch(samples, REWARDS)
    everything = batch.manifest.model_copy(
        update={"micro_batches": tuple(b.model_copy(update={"train": True}) for b in batch.manifest.micro_batches)}
    )
    scored = make_trainer(folder).step(batch)
    trained = make_trainer(folder).step(TrainBatch(manifest=everything, samples=batch.samples))
    assert scored.trained_tokens < trained.trained_tokens == scored.tokens
    assert scored.grad_norm == pytest.approx(trained.grad_norm, rel=1e-6)
    assert scored.loss_tokens == trained.loss_tokens == sum(sum(sample.generated) for sample in samples)
    assert scored.mismatch_mean == pytest.approx(trained.mismatch_mean, rel=1e-6)


def test_a_batch_without_a_vote_makes_a_version_of_the_same_weights(folder: Path) -> None:
    trainer = make_trainer(folder)
    trainer.step(make_batch(make_samples(12), REWARDS))
    before = trainer.digests()
    everyone = dict.fromkeys(range(12), MaskReason.INFRA)
    result = trainer.step(make_batch(make_samples(12), REWARDS, masks=everyone, version=1))
    assert (result.loss_tokens, result.grad_norm, trainer.version) == (0, 0.0, 2)
    assert trainer.digests() == before


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_same_steps_give_the_same_digests(folder: Path, dtype: ComputeDtype) -> None:
    ends: list[object] = []
    for _ in range(2):
        trainer = make_trainer(folder, dtype=dtype)
        for version in range(3):
            trainer.step(make_batch(make_samples(12, seed=version), REWARDS, version=version))
        ends.append((trainer.digests(), trainer.version, trainer.probe((1, 2, 3))))
    assert ends[0] == ends[1]


def test_step_in_another_thread_has_the_same_digests(folder: Path) -> None:
    here, there = make_trainer(folder, threads=2), make_trainer(folder, threads=2)
    batch = make_batch(make_samples(12), REWARDS)
    here.step(batch)
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(there.step, batch).result()
    assert here.digests() == there.digests()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_checkpoint_is_taken_up_to_the_bit(folder: Path, tmp_path: Path, dtype: ComputeDtype) -> None:
    straight = make_trainer(folder, dtype=dtype)
    straight.step(make_batch(make_samples(12), REWARDS))
    straight.save_checkpoint(tmp_path / "checkpoint")
    resumed = make_trainer(folder, dtype=dtype)
    resumed.load_checkpoint(tmp_path / "checkpoint")
    assert (resumed.version, resumed.digests()) == (1, straight.digests())
    results = [t.step(make_batch(make_samples(12, seed=5), REWARDS, version=1)) for t in (straight, resumed)]
    assert results[0].loss == results[1].loss
    assert straight.digests() == resumed.digests()


@pytest.mark.parametrize("file", ["masters.safetensors", "optimiser.safetensors", "checkpoint.json"])
def test_damaged_checkpoint_is_refused_and_changes_nothing(folder: Path, tmp_path: Path, file: str) -> None:
    trainer = make_trainer(folder)
    trainer.step(make_batch(make_samples(12), REWARDS))
    trainer.save_checkpoint(tmp_path / "checkpoint")
    damaged = bytearray((tmp_path / "checkpoint" / file).read_bytes())
    damaged[-3] ^= 1
    (tmp_path / "checkpoint" / file).write_bytes(damaged)
    other = make_trainer(folder)
    before = other.digests()
    with pytest.raises(DigestMismatch):
        other.load_checkpoint(tmp_path / "checkpoint")
    assert (other.version, other.digests()) == (0, before)


def test_checkpoint_of_another_model_is_refused(folder: Path, tmp_path: Path) -> None:
    make_trainer(make_folder(tmp_path / "llama", LLAMA)).save_checkpoint(tmp_path / "checkpoint")
    with pytest.raises(DigestMismatch):
        make_trainer(folder).load_checkpoint(tmp_path / "checkpoint")


def test_export_carries_the_exported_digest_and_the_probe(folder: Path, tmp_path: Path) -> None:
    trainer = make_trainer(folder, dtype="bfloat16")
    trainer.step(make_batch(make_samples(12), REWARDS))
    trainer.export(tmp_path / "export")
    exported = load_folder(tmp_path / "export")
    assert {tensor.dtype for tensor in exported.tensors.values()} == {torch.bfloat16}
    assert weights_digest(exported) == trainer.digests().exported != trainer.digests().master
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "export", dtype="auto", attn_implementation="eager")
    ids = torch.tensor([[5, 9, 2, 40]])
    logits = model(input_ids=ids).logits[0, :-1].float()
    wanted = logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
    assert trainer.probe((5, 9, 2, 40)) == pytest.approx(wanted.tolist(), abs=0.02)


def test_float32_export_and_master_are_one(folder: Path) -> None:
    digests = make_trainer(folder).digests()
    assert digests.master == digests.exported == weights_digest(load_folder(folder))


def test_non_finite_gradient_is_refused_and_changes_nothing(folder: Path) -> None:
    raw = GrpoConfig(importance="none", mismatch_max=None, normalise="none")
    trainer = make_trainer(folder, raw)
    before = trainer.digests()
    # The loss is finite in float32, the squares of its gradient are not.
    with pytest.raises(NonFinite, match=r"gradient is not finite in \d+ of \d+ tensors, first in model\."):
        trainer.step(make_batch(make_samples(12), [reward * 1e35 for reward in REWARDS], grpo=raw))
    assert (trainer.version, trainer.digests()) == (0, before)


def test_weights_without_finite_logprobs_are_refused(folder: Path, tmp_path: Path) -> None:
    weights = load_folder(folder)
    weights.tensors["model.norm.weight"].fill_(float("nan"))
    save_folder(weights, QWEN3.to_dict(), tmp_path / "broken")
    with pytest.raises(WeightsError, match="no numbers"):
        make_trainer(tmp_path / "broken")


def test_model_that_changes_its_logits_after_the_head_is_refused(tmp_path: Path) -> None:
    capped = Gemma2Config(
        vocab_size=48,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=12,
        intermediate_size=48,
        final_logit_softcapping=0.5,
    )
    with pytest.raises(UnsupportedModel, match="changes its logits"):
        make_trainer(make_folder(tmp_path / "gemma", capped))


def test_step_after_a_refused_one_is_as_if_it_never_was(folder: Path) -> None:
    samples = make_samples(12)
    bad = samples[:]
    # Finite, but its ratio to the trainer overflows float32.
    bad[0] = samples[0].model_copy(update={"logprobs": (-1e4,) * len(samples[0].logprobs)})
    weighted = GrpoConfig(importance_min=1e-9, importance_max=1e300, mismatch_max=None)
    trainer, fresh = make_trainer(folder, weighted), make_trainer(folder, weighted)
    with pytest.raises(NonFinite, match="rollout/r/0/0/0"):
        trainer.step(make_batch(bad, REWARDS))
    good = make_batch(samples, REWARDS)
    assert trainer.step(good).loss == fresh.step(good).loss
    assert trainer.digests() == fresh.digests()


def test_batch_of_another_parent_is_refused(folder: Path) -> None:
    with pytest.raises(WrongParent, match="starts from version 3, version 0 is loaded"):
        make_trainer(folder).step(make_batch(make_samples(12), REWARDS, version=3))


def test_rows_that_are_not_the_manifests_are_refused(folder: Path) -> None:
    batch = make_batch(make_samples(12), REWARDS)
    with pytest.raises(DigestMismatch, match="rollout/r/0/0/0"):
        make_trainer(folder).step(TrainBatch(batch.manifest, (*make_samples(1, seed=9), *batch.samples[1:])))
    with pytest.raises(DigestMismatch, match="11 rows"):
        make_trainer(folder).step(TrainBatch(batch.manifest, batch.samples[1:]))


def test_masks_of_manifest_and_step_are_counted_by_cause(folder: Path) -> None:
    samples = make_samples(12)
    batch = make_batch(samples, REWARDS, masks={4: MaskReason.WALL_CLOCK})
    result = make_trainer(folder, GrpoConfig()).step(batch)
    # The rows' log-probabilities are invented: no row is within 0.1 % of the trainer's.
    found = result.mask_counts
    assert found[MaskReason.WALL_CLOCK] == 1
    assert found.get(MaskReason.MISMATCH, 0) + found.get(MaskReason.IMPORTANCE, 0) == 11
    assert result.grad_norm == 0.0
    assert result.metrics()["masked_wall_clock"] == 1.0


def test_rollout_without_a_row_is_left_out(folder: Path) -> None:
    batch = make_batch(make_samples(12), REWARDS)
    first = batch.manifest.samples[0].model_copy(
        update={"tokens": 0, "generated_tokens": 0, "content": "", "reward": None, "mask": MaskReason.INFRA}
    )
    facts = [RolloutFacts(**s.model_dump(exclude={"advantage"})) for s in (first, *batch.manifest.samples[1:])]
    manifest: BatchManifest = build_manifest(
        step=0, parent_version=0, temperature=1.0, rollouts=facts, grpo=OPEN, packing=PACKING
    )
    result = make_trainer(folder).step(TrainBatch(manifest, (None, *batch.samples[1:])))
    assert result.mask_counts == {MaskReason.INFRA: 1}
    assert result.generated_tokens == sum(s.generated_tokens for s in facts)


def test_learning_raises_the_probability_of_what_was_rewarded(folder: Path) -> None:
    samples = make_samples(4)
    trainer = make_trainer(folder)
    before = sum(trainer.probe(samples[0].token_ids))
    for version in range(8):
        trainer.step(make_batch(samples, [1.0, 0.0, 0.0, 0.0], version=version))
    assert sum(trainer.probe(samples[0].token_ids)) > before + 1


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_model_folder_that_lacks_something_says_so(tmp_path: Path, missing: str) -> None:
    folder = make_folder(tmp_path / "model")
    (folder / missing).unlink()
    with pytest.raises(WeightsError, match=str(folder)):
        make_trainer(folder)
