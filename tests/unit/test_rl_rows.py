"""Rollouts of several rows of tokens in a batch and in a step: one vote, and each generated token once."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.agent.protocol import Action
from stepwell.agent.turn import TurnPayload
from stepwell.policy.trainers.protocol import TrainBatch
from stepwell.policy.weights import DigestMismatch
from stepwell.rl.advantages import group_advantages
from stepwell.rl.batching import BatchManifest, RolloutFacts, build_manifest
from stepwell.rl.config import GrpoConfig, OptimiserConfig, PackingConfig
from stepwell.rl.masks import MaskReason
from stepwell.rl.rows import recorded_rows, train_rows
from stepwell.rl.samples import TrainSample, rollout_content
from tests.small_models import (
    REWARDS,
    make_batch,
    make_batch_of_rows,
    make_folder,
    make_samples,
    make_trainer,
    plain_gradient,
)

ROWS = [2, 1, 3, 1, 1, 2, 1, 1, 1, 2, 1, 4]
"""Of each rollout of three groups of four."""


def in_rows(seed: int = 0) -> list[list[TrainSample]]:
    rows = iter(make_samples(sum(ROWS), seed))
    return [[next(rows) for _ in range(count)] for count in ROWS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("model") / "qwen3")


def test_manifest_of_single_rows_has_the_bytes_that_it_always_had() -> None:
    rollouts = [
        RolloutFacts(
            stream=f"rollout/r/4/{prompt}/{sample}",
            prompt=prompt,
            sample=sample,
            turns=2,
            tokens=20 + 7 * sample,
            generated_tokens=5,
            content=f"{prompt}{sample}",
            reward=float(sample % 2),
            mask=None,
        )
        for prompt in range(2)
        for sample in range(3)
    ]
    nothing = {"turns": 0, "tokens": 0, "generated_tokens": 0, "content": "", "reward": None, "mask": MaskReason.INFRA}
    rollouts.append(rollouts[0].model_copy(update={"stream": "rollout/r/4/1/3", "prompt": 1, "sample": 3, **nothing}))
    manifest = build_manifest(
        step=4, parent_version=4, temperature=1.0, rollouts=rollouts, grpo=GrpoConfig(), packing=PackingConfig()
    )
    # Computed before there were rollouts of several rows.
    assert manifest.digest() == "3e1169efa068b707ad4639dd7c51f29565d5f98e7aeb30f7b41f8c0556bcb1da"


def test_a_rollout_votes_once_and_its_rows_share_its_advantage() -> None:
    batch = make_batch_of_rows(in_rows(), REWARDS, grpo=GrpoConfig())
    wanted = [
        advantage
        for group in range(0, 12, 4)
        for advantage in group_advantages(list(REWARDS[group : group + 4]), GrpoConfig())
    ]
    assert [sample.advantage for sample in batch.manifest.samples] == wanted
    shared = [advantage for advantage, count in zip(wanted, ROWS, strict=True) for _ in range(count)]
    assert [row.advantage for row in batch.recorded] == shared


@given(counts=st.lists(st.integers(1, 4), min_size=4, max_size=12), budget=st.integers(1, 400), seed=st.integers(0, 9))
def test_every_row_is_packed_once_at_its_own_length(counts: list[int], budget: int, seed: int) -> None:
    rows = iter(make_samples(sum(counts), seed))
    rollouts = [[next(rows) for _ in range(count)] for count in counts]
    rewards = [float(random.Random(seed + index).random() < 0.5) for index in range(len(counts))]
    packing = PackingConfig(micro_batch_tokens=budget, pad_multiple=8)
    batch = make_batch_of_rows(rollouts, rewards, packing=packing)
    packed = [index for micro_batch in batch.manifest.micro_batches for index in micro_batch.samples]
    assert sorted(packed) == list(range(sum(counts)))
    for micro_batch in batch.manifest.micro_batches:
        lengths = [batch.recorded[index].tokens for index in micro_batch.samples]
        assert max(lengths) <= micro_batch.length < max(lengths) + 8
        assert len(lengths) == 1 or len(lengths) * micro_batch.length <= budget
    assert BatchManifest.model_validate_json(batch.manifest.canonical_bytes()) == batch.manifest
    batch.check()


def test_the_update_is_that_of_every_generated_token_once(folder: Path) -> None:
    batch = make_batch_of_rows(in_rows(), REWARDS, masks={2: MaskReason.CONTEXT})
    gradient, mismatch, _ = plain_gradient(folder, batch, 1.0)
    trainer = make_trainer(folder, optimiser=OptimiserConfig(learning_rate=1e-3, beta1=0.5, max_grad_norm=None))
    result = trainer.step(batch)
    moments = trainer.optimiser_state().tensors
    for name, wanted in gradient.items():
        found = moments[f"{name}.exp_avg"].double() * 2  # the first moment is (1 - beta1) of the gradient
        assert float((found - wanted).norm()) <= 1e-4 * float(wanted.norm()) + 1e-9, name
    generated = [sum(sum(row.generated) for row in rows) for rows in in_rows()]
    assert result.generated_tokens == sum(generated)
    assert result.loss_tokens == sum(generated) - generated[2]
    assert result.mismatch_mean == pytest.approx(mismatch, rel=1e-4)
    assert result.mask_counts == {MaskReason.CONTEXT: 1}


def test_rollouts_of_one_row_train_as_they_always_did(folder: Path) -> None:
    plain, listed = make_trainer(folder), make_trainer(folder)
    plain.step(make_batch(make_samples(12), REWARDS))
    listed.step(make_batch_of_rows([[sample] for sample in make_samples(12)], REWARDS))
    assert plain.digests() == listed.digests()


def test_rows_of_a_rollout_that_are_not_the_manifests_are_refused(folder: Path) -> None:
    batch = make_batch_of_rows(in_rows(), REWARDS)
    swapped = (batch.samples[1], batch.samples[0], *batch.samples[2:])
    with pytest.raises(DigestMismatch, match="rollout/r/0/0/0"):
        make_trainer(folder).step(TrainBatch(batch.manifest, swapped))
    with pytest.raises(DigestMismatch, match=f"{sum(ROWS) - 1} rows for a manifest of {sum(ROWS)}"):
        make_trainer(folder).step(TrainBatch(batch.manifest, batch.samples[1:]))


@pytest.mark.parametrize("change", [{"tokens": 99}, {"generated_tokens": 1}, {"content": "another"}])
def test_rows_that_are_not_what_their_rollout_ended_with_are_refused(change: dict[str, object]) -> None:
    batch = make_batch_of_rows(in_rows(), REWARDS)
    first = RolloutFacts(**batch.manifest.samples[0].model_dump(exclude={"advantage"}))
    rows = (first.rows[0].model_copy(update=change), *first.rows[1:])
    with pytest.raises(ValueError, match="rollout/r/0/0/0 ended with"):
        build_manifest(
            step=0,
            parent_version=0,
            temperature=1.0,
            rollouts=[first.model_copy(update={"rows": rows})],
            grpo=GrpoConfig(),
            packing=PackingConfig(),
        )


def turn(segment: int, prompt: tuple[int, ...], generated: tuple[int, ...]) -> TurnPayload:
    return TurnPayload(
        delta_ids=prompt,
        token_ids=generated,
        logprobs=tuple(-0.5 for _ in generated),
        finish_reason="stop",
        action=Action("message", {}),
        observation="",
        finished=False,
        segment=segment,
    )


def test_turns_make_rows_in_which_each_generated_token_is_trained_once() -> None:
    # The second row holds what the first generated as context; the last turn goes on in the first row.
    turns = [turn(0, (1, 2), (3, 4)), turn(1, (1, 3, 4), (5,)), turn(0, (6,), (7,))]
    rows = train_rows(turns)
    assert [(row.token_ids, row.generated) for row in rows] == [
        ((1, 2, 3, 4, 6, 7), (False, False, True, True, False, True)),
        ((1, 3, 4, 5), (False, False, False, True)),
    ]
    recorded = recorded_rows(turns)
    assert [(row.turns, row.tokens, row.generated_tokens) for row in recorded] == [((0, 2), 6, 3), ((1,), 4, 1)]
    assert [row.content for row in recorded] == [row.content_digest() for row in rows]


def test_content_of_a_rollout_is_that_of_its_row_or_of_all_its_rows_in_order() -> None:
    assert (rollout_content([]), rollout_content(["a"])) == ("", "a")
    contents = {rollout_content(rows) for rows in (["a", "b"], ["b", "a"], ["a", "b", "b"])}
    assert len(contents) == 3
